/** Takes what a server has queued to the table: `consumer.ts VARIANT PLACES`. */
import { ready } from '../role.ts'
import { placesFrom } from './service.ts'
import { variant } from './variants.ts'

const [name = '', places] = process.argv.slice(2)
const consume = await variant(name).consume?.()
await consume?.(placesFrom(places))
ready()
