/**
 * Millpond, with nothing tuned but the consumer's batches: its handler gets many names and writes them with one insert. Nothing is kept of a job that
 * is done, as the lists keep nothing of a message that was taken: the row is what is wanted.
 */
import { Millpond } from '../../../src/index.ts'
import type { Consume, Serve } from '../service.ts'
import { Users } from '../users.ts'

interface User {
  name: string
}
/**
 * At most as many rows as one insert takes. A batch waits so long for others, but not once it has enough for an insert to be cheap: where it waits until it is
 * full, claims and inserts come in bursts, and the server that shares the two cores accepts less.
 */
const BATCH = { max: 500, within: '20ms', min: 100 } as const

const queueOf = (pond: Millpond) => pond.queue<User>('users', { keep: { done: 0 } })

const serve =
  (url: string): Serve =>
  async () => {
    const pond = await Millpond.open(url)
    const users = queueOf(pond)
    return { accept: async (name) => (await users.push({ name })).id }
  }

const consume =
  (url: string): Consume =>
  async ({ postgres }) => {
    const pond = await Millpond.open(url)
    const users = new Users(postgres)
    queueOf(pond).work((jobs) => users.addMany(jobs.map((job) => job.data.name)), { batch: BATCH })
  }

export const onRedis: Serve = (places) => serve(places.redis)(places)
export const onPostgres: Serve = (places) => serve(places.postgres)(places)
export const fromRedis: Consume = (places) => consume(places.redis)(places)
export const fromPostgres: Consume = (places) => consume(places.postgres)(places)
