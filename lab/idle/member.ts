/** A process with a producer or a worker that has had a job each, and then nothing more to do. */
import { Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'

const [url = '', role = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)
const queue = pond.queue<number>('idle')
if (role === 'worker') queue.work(async () => {})
else await queue.push(process.pid)
ready()
setInterval(() => {}, 1 << 30)
