/**
 * Millpond, with nothing tuned but the consumer’s slots: its handlers that run together share one insert. Nothing is kept of a job that
 * is done, as the lists keep nothing of a message that was taken: the row is what is wanted.
 */
import { Millpond } from '../../../src/index.ts'
import { patientInserts } from '../grouped.ts'
import type { Consume, Serve } from '../service.ts'

interface User {
  name: string
}
/** As many rows as one insert takes. */
const SLOTS = 500
/** How long a handler waits for others to share its insert, in ms. */
const WITHIN = 20

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
    const insert = patientInserts(postgres, WITHIN)
    queueOf(pond).work(
      async (job) => {
        await insert(job.data.name)
      },
      { concurrency: SLOTS },
    )
  }

export const onRedis: Serve = (places) => serve(places.redis)(places)
export const onPostgres: Serve = (places) => serve(places.postgres)(places)
export const fromRedis: Consume = (places) => consume(places.redis)(places)
export const fromPostgres: Consume = (places) => consume(places.postgres)(places)
