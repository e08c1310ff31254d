/** Jobs that go as if they had never been pushed, and queues that go with all they have. */
import type { Input } from '../../../store.ts'
import { JOB_STATES } from '../../../values/jobs/records.ts'
import type { Removed, RemoveQueueRequest } from '../../../values/operations/requests.ts'
import { inChunks, MAX_CHANGES_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { idBytes, numberIn, textIn } from '../wire.ts'

export function remove(context: StoreContext, request: Input<'remove'>): Promise<Removed> {
  return 'ids' in request ? removeIds(context, request.ids) : removeOf(context, request)
}

async function removeIds(context: StoreContext, ids: readonly string[]): Promise<Removed> {
  const { local } = context.notifier
  const answers = await inChunks(
    [...new Set(ids)],
    async (some) => {
      const answers = await callScript(context, 'remove', { head: [], items: some.map(idBytes), safe: true })
      for (const [at, answer] of answers.entries()) {
        if (!Array.isArray(answer)) continue
        const queue = textIn(answer[1])
        local.ring('cancelled', queue, some[at])
        local.ring('finished', queue, some[at])
        local.ring('room', queue)
      }
      return answers
    },
    MAX_CHANGES_PER_CALL,
  )
  return { removed: answers.filter((answer) => answer !== 0).length, more: false }
}

/** In steps: each removes some jobs, and the last one the queue. */
async function removeOf(context: StoreContext, { queue, state, limit }: RemoveQueueRequest): Promise<Removed> {
  const { local } = context.notifier
  let removed = 0
  let more = true
  while (more && removed < limit) {
    const head = [
      state === undefined ? JOB_STATES : [state],
      Math.min(limit - removed, MAX_CHANGES_PER_CALL),
      state === undefined,
    ]
    const [count, isMore, stopped] = await callScript(context, 'remove', { queue, head, safe: true })
    removed += numberIn(count)
    more = isMore === 1
    if (stopped === 1) for (const kind of ['room', 'cancelled', 'finished'] as const) local.ring(kind, queue)
  }
  if (!more && state === undefined) context.settings.delete(queue)
  return { removed, more }
}
