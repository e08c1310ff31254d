/** A process that moves, until it is done or killed. Tells its report. */
import { move } from '../../src/move/index.ts'
import { ready } from '../role.ts'

const [source = '', target = ''] = process.argv.slice(2)
ready()
// Some stores list no queues.
const { moved, repeated, left } = await move(source, target, { queues: ['numbers'] })
process.send?.({ moved, repeated, left })
