import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
// After the block:
await pond.close()
