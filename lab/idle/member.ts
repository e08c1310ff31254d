/** A process with a producer or a worker that has had a job each, and then nothing more to do. A worker may declare schedules, too. */
import { Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'

const [url = '', role = '', schedules = '0'] = process.argv.slice(2)
const pond = await Millpond.open(url)
const queue = pond.queue<number>('idle')
if (role === 'worker') {
  queue.work(async () => {})
  const names = Array.from({ length: Number(schedules) }, (_, n) => `schedule-${n}`)
  // None fires while it is measured.
  await Promise.all(names.map((name, n) => pond.schedule(name, '0 0 1 1 *', queue, n)))
} else await queue.push(process.pid)
ready()
setInterval(() => {}, 1 << 30)
