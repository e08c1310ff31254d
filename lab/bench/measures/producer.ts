/** Started by `wait.ts`: pushes a job whenever it is told to, into a queue whose worker lives in another process. */
import { machineTime } from '../../clock.ts'
import { ready } from '../../role.ts'
import { type ContenderName, openContender } from '../contender.ts'
import { LINE } from './wait.ts'

const [name = '', url = ''] = process.argv.slice(2)
const contender = await openContender(name as ContenderName, { url, concurrency: 1, forget: false })
const line = contender.line(LINE, async () => {})
process.on('message', (n) => {
  void line.push({ n: Number(n), sent: machineTime() })
})
ready()
