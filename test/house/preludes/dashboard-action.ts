import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const audit = { write: (_: object) => {} }
