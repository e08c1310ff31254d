// node trip.ts [--fail hotel]: a saga. Flight, hotel and car are booked one after the other; if one fails, the others are undone.
import { parseArgs } from 'node:util'
import { Millpond, Outcome } from 'millpond'

interface Step {
  trip: string
  what: 'flight' | 'hotel' | 'car'
}

const { values } = parseArgs({ options: { fail: { type: 'string' } } })
const pond = await Millpond.open(process.env.STORE ?? 'memory:')
pond.on('dead', ({ id, error }) => console.log(`${id.slice(-4)} is dead: ${error.message}`))
const book = pond.queue<Step, { booking: string }>('book')
const settle = pond.queue<{ trip: string }, { booked: string[] } | { undone: string[] }>('settle')

book.work(({ data: { trip, what } }) => {
  if (what === values.fail) return Outcome.giveUp(new Error(`no ${what} is left`))
  console.log(`booked the ${what}`)
  return { booking: `${trip}/${what}` }
})

// It waits for all three, and runs however they have ended.
settle.work(async ({ data: { trip } }, ctx) => {
  const steps = await ctx.parents<{ booking: string }>()
  // What is not known cannot be undone: somebody must look.
  if (steps.some(({ state }) => state === 'gone')) throw new Error(`a booking of ${trip} is not known any more`)
  const bookings = steps.flatMap(({ result }) => result?.booking ?? [])
  if (bookings.length === steps.length) return { booked: bookings }
  // Undoing may be tried again: a booking that is undone already must be no error.
  for (const booking of bookings) console.log(`undid ${booking} of trip ${trip}`)
  return { undone: bookings }
})

const trip = 'trip-7'
const pushed = await pond.pushAll([
  [book, { trip, what: 'flight' }],
  [book, { trip, what: 'hotel' }, { after: [0] }],
  [book, { trip, what: 'car' }, { after: [1] }],
  [settle, { trip }, { after: [0, 1, 2], onDead: 'run' }],
])
console.log(await pond.result(pushed[3]?.id ?? ''))
await pond.close()
