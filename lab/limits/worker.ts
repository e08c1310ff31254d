/** A process with a worker; told to, it tells its notes. */
import { Millpond } from '../../src/index.ts'
import { work } from './work.ts'

const [url = '', settings = '{}'] = process.argv.slice(2)
process.once('disconnect', () => process.exit())
const pond = await Millpond.open(url)
const notes = work(pond, JSON.parse(settings))
process.on('message', () => process.send?.(notes))
process.send?.({ port: 0 })
