/** Millpond, with nothing tuned but the consumer's slots: its handlers that run together share one insert. */
import { Millpond } from '../../../src/index.ts'
import { groupedInserts } from '../grouped.ts'
import type { Consume, Serve } from '../service.ts'

interface User {
  name: string
}
const QUEUE = 'users'
/** As many rows as one insert takes. */
const SLOTS = 500
/** How long a handler waits for others to share its insert, in ms. */
const WITHIN = 20

const serve =
  (url: string): Serve =>
  async () => {
    const pond = await Millpond.open(url)
    const users = pond.queue<User>(QUEUE)
    return { accept: async (name) => (await users.push({ name })).id }
  }

const consume =
  (url: string): Consume =>
  async ({ postgres }) => {
    const pond = await Millpond.open(url)
    const insert = groupedInserts(postgres, WITHIN)
    pond.queue<User>(QUEUE).work(
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
