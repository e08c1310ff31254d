/** A process that pushes numbers from FROM on, every STEP-th, some hundred a second. Asked, it ends and tells how many. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'

const PAUSE = 20
const AT_ONCE = 5

const [url = '', from = '', step = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)
const queue = pond.queue<number>('numbers')
let pushed = 0
let isOpen = true
const run = async () => {
  while (isOpen) {
    const numbers = Array.from({ length: AT_ONCE }, (_, n) => Number(from) + (pushed + n) * Number(step))
    await queue.pushMany(numbers)
    pushed += AT_ONCE
    await sleep(PAUSE)
  }
}
const running = run()
ready(async () => {
  isOpen = false
  await running
  await pond.close()
  return { pushed }
})
