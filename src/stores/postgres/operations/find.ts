/** Look-ups: find and list. */
import { Batcher } from '../../../batch/batcher.ts'
import type { GroupsRequest, JobRecord, JobState, ListRequest } from '../../../store.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import type { Context } from '../context.ts'
import { groupFrom, integer, orNull, plainArray, recordFrom } from '../wire.ts'

/** Records may be large. */
const MAX_IDS_PER_CALL = 500

const FINAL: readonly JobState[] = ['done', 'dead', 'cancelled']

/** Look-ups that are asked for in one turn, or while one is under way, go in one call: a pond that waits for many jobs asks for each. */
export function find({ calls, notifier }: Context): (ids: readonly string[]) => Promise<(JobRecord | null)[]> {
  const turn = new Batcher<readonly string[], (JobRecord | null)[]>(
    async (lookUps) => {
      const wanted = [...new Set(lookUps.flat())]
      const found = await calls.answersEvenClosing('find($1, $2)', [plainArray(wanted), notifier.listener])
      const answers = new Map<string, unknown>()
      for (const answer of found) {
        const { id, queue, state } = recordFrom(answer)
        answers.set(id, answer)
        if (!FINAL.includes(state)) notifier.noted('finished', queue)
      }
      // Each a copy of its own, also where two asked for the same job.
      return lookUps.map((ids) => ids.map((id) => orNull(answers.get(id), recordFrom)))
    },
    { items: Number.POSITIVE_INFINITY, bytes: MAX_IDS_PER_CALL },
  )
  return async (ids) => {
    calls.assertOpen()
    notifier.stir()
    // Accepted: a store that closes lets it go first.
    return calls.track(turn.add([...ids], ids.length))
  }
}

export async function list({ calls }: Context, { queue, state, limit, after }: ListRequest): Promise<JobRecord[]> {
  return (await calls.answers('list($1, $2, $3, $4)', [queue, state, limit, after ?? null])).map(recordFrom)
}

export async function groups({ calls }: Context, request: GroupsRequest): Promise<GroupRecord[]> {
  const { queue, limit, after, group } = request
  const values = [queue, limit, after ?? null, group ?? null, calls.now()]
  return (await calls.answers('groups($1, $2, $3, $4, $5)', values)).map(groupFrom)
}

export async function ahead({ calls }: Context, id: string): Promise<number | null> {
  return orNull(await calls.answer('ahead($1)', [id]), integer)
}
