import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
// After the block:
end()
await pond.close()
