/** Started by `wait.ts`: pushes into a queue whose worker lives in another process. */
import type { WaitTask } from '../measure.ts'
import { produceAlone } from './wait.ts'

const [task = '', dir = ''] = process.argv.slice(2)
await produceAlone(JSON.parse(task) as WaitTask, dir)
process.exit(0)
