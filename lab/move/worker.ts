/** A process that works some hundred jobs a second. Asked, it ends and tells which it has run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'

const [url = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)
const ran: number[] = []
pond.queue<number>('numbers').work(
  async ({ data }) => {
    ran.push(data)
    await sleep(10)
  },
  { concurrency: 4 },
)
ready(async () => {
  await pond.close()
  return { ran }
})
