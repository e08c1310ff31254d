import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const reports = pond.queue('reports')
