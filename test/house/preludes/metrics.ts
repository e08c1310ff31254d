import { createServer } from 'node:http'
import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
// BLOCK
// After the block:
process.exit(0)
