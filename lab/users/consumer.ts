/** Takes what a server has queued to the table. */
import { ready } from '../role.ts'
import { variant } from './variants.ts'

const [name = '', postgres = '', redis = ''] = process.argv.slice(2)
const consume = await variant(name).consume?.()
await consume?.({ postgres, redis })
ready()
