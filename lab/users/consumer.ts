/** Takes what a server has queued to the table. */
import { ready } from '../role.ts'
import { childArguments } from './messages.ts'
import { variant } from './variants.ts'

const { name, ...places } = childArguments(process.argv.slice(2))
const consume = await variant(name).consume?.()
await consume?.(places)
ready()
