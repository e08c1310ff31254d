/**
 * A process of the fault tests, to be killed. `produce URL`: pushes without end, and writes a line with the number of each job whose push
 * was acknowledged; a push that fails is not made again. `work URL`: handles, and writes a line with the number of each job that it handled.
 * Some fail at their first attempt.
 */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'

const [, , role, url = '', first = '0'] = process.argv
const pond = await Millpond.open(url)
const retry = { attempts: 1000, backoff: { type: 'fixed', base: 20 } } as const
const queue = pond.queue<{ number: number }>('q', { retry })
const tell = (number: number): void => {
  writeSync(1, `${number}\n`)
}
if (role === 'produce') {
  for (let number = Number(first); ; number += 10) {
    const numbers = Array.from({ length: 10 }, (_, index) => number + index)
    const pushes = numbers.map((each) => queue.push({ number: each }).then(() => tell(each)))
    const pushed = await Promise.allSettled(pushes)
    if (pushed.some(({ status }) => status === 'rejected')) await sleep(50)
  }
} else {
  for (const name of ['error', 'failed'] as const) pond.on(name, () => undefined)
  queue.work(
    async ({ data, attempt }) => {
      await sleep(1)
      if (data.number % 20 === 7 && attempt === 1) throw new Error('the first attempt fails')
      tell(data.number)
    },
    { concurrency: 20 },
  )
}
