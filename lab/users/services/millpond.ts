/**
 * Millpond, with nothing tuned but the consumer's batches: its handler gets many names and writes them with one insert. Nothing is kept of a job that
 * is done, as the lists keep nothing of a message that was taken: the row is what is wanted. Where a client follows its request, the job is kept for a
 * minute, and its result is the row's id.
 */
import type { Millpond } from '../../../src/index.ts'
import { libraryOf, webOf } from '../../checkout.ts'
import type { Consume, Places, Serve } from '../service.ts'
import { Users } from '../users.ts'

interface User {
  name: string
}
/**
 * At most as many rows as one insert takes. A batch waits so long for others, but not once it has enough for an insert to be cheap: where it waits until it is
 * full, claims and inserts come in bursts, and the server that shares the two cores accepts less.
 */
const BATCH = { max: 500, within: '20ms', min: 100 } as const

/** The lease is short so that what a killed consumer held comes back while we watch; 30 s unless set. */
const queueOf = (pond: Millpond, followed: boolean) =>
  pond.queue<User>('users', { keep: { done: followed ? '1m' : 0 }, lease: '2s' })

function on(urlOf: (places: Places) => string): { serve: Serve; consume: Consume } {
  const open = async (places: Places) => (await libraryOf(places.checkout)).Millpond.open(urlOf(places))
  return {
    async serve(places) {
      const pond = await open(places)
      const { follow } = await webOf(places.checkout)
      const users = queueOf(pond, places.followed)
      return { accept: async (name) => (await users.push({ name })).id, follow: follow(pond) }
    },
    async consume(places) {
      const pond = await open(places)
      const users = new Users(places.postgres)
      const names = (jobs: readonly { data: User }[]) => jobs.map((job) => job.data.name)
      const queue = queueOf(pond, places.followed)
      if (places.followed) queue.work((jobs) => users.insertMany(names(jobs)), { batch: BATCH })
      else queue.work((jobs) => users.addMany(names(jobs)), { batch: BATCH })
    },
  }
}

export const redis = on((places) => places.redis)
export const postgres = on((places) => places.postgres)
export const sqlite = on((places) => places.sqlite)
