import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const queue = pond.queue('emails')
const handler = async () => {}
