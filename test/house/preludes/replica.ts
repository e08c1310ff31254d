import { Millpond } from 'millpond'

const pond = await Millpond.open(process.env.MILLPOND_TEST_POSTGRES ?? '')
const emails = pond.queue<{ user: number }>('emails')
const send = async (_: unknown) => {}
