/** Millpond through its public API, with nothing tuned. */
import { Millpond } from '../../../../src/index.ts'
import { QUEUE } from '../bulks.ts'
import type { OpenGrouped } from '../contender.ts'

export const open: OpenGrouped = async ({ url, concurrency, limit }) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue<string>(QUEUE, { limits: { group: { running: limit } } })
  return {
    async fill(groups) {
      await queue.pushMany(groups, { each: (group) => ({ group }) })
    },
    work(handler) {
      queue.work((job) => handler(job.data), { concurrency })
    },
  }
}
