/**
 * A process of the fault tests, to be killed. `produce URL`: pushes without end, and writes a line with the number of each job whose push
 * was acknowledged. `work URL`: handles, and writes a line with the number of each job that it handled.
 */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'

const [, , role, url = '', first = '0'] = process.argv
const pond = await Millpond.open(url)
const queue = pond.queue<{ number: number }>('q', { retry: { attempts: 1000 } })
const tell = (number: number): void => {
  writeSync(1, `${number}\n`)
}
if (role === 'produce') {
  for (let number = Number(first); ; number += 10) {
    const numbers = Array.from({ length: 10 }, (_, index) => number + index)
    await Promise.all(numbers.map((each) => queue.push({ number: each }).then(() => tell(each))))
  }
} else {
  pond.on('error', () => undefined)
  queue.work(
    async ({ data }) => {
      await sleep(1)
      tell(data.number)
    },
    { concurrency: 20 },
  )
}
