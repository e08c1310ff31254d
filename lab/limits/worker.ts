/** A process with a worker; told to, it tells its notes. */
import { Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'
import { work } from './work.ts'

const [url = '', settings = '{}'] = process.argv.slice(2)
const pond = await Millpond.open(url)
const notes = work(pond, JSON.parse(settings))
ready(() => notes)
