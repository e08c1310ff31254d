import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const emails = pond.queue<{ name: string }>('emails')
const render = async (data: { name: string }, _: { signal: AbortSignal }) => `<p>${data.name}</p>`
const tooMany = (html: string) => html.length > 1000
const valid = (html: string) => html.length > 0
