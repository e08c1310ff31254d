/** Look-ups: find and list. */
import { Batcher } from '../../../batch/batcher.ts'
import type { GroupsRequest, JobRecord, ListedRecord, ListRequest } from '../../../store.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import type { Context } from '../notifier.ts'
import { orNull, plainArray, recordFrom, type TaggedRecord } from '../wire.ts'

/** Records may be large. */
const MAX_IDS_PER_CALL = 500

/** Look-ups that are asked for in one turn, or while one is under way, go in one call: a pond that waits for many jobs asks for each. */
export function find({ calls, notifier }: Context): (ids: readonly string[]) => Promise<(JobRecord | null)[]> {
  const turn = new Batcher<readonly string[], (JobRecord | null)[]>(
    async (lookUps) => {
      const wanted = plainArray([...new Set(lookUps.flat())])
      const found = await calls.answers<TaggedRecord>('find($1, $2)', [wanted, notifier.listener])
      for (const { finishedAt, queue } of found) if (finishedAt === null) notifier.noted('finished', queue)
      const records = new Map(found.map((record) => [record.id, record]))
      // Each a copy of its own, also where two asked for the same job.
      return lookUps.map((ids) => ids.map((id) => orNull(records.get(id), recordFrom)))
    },
    { items: Number.POSITIVE_INFINITY, bytes: MAX_IDS_PER_CALL },
  )
  return async (ids) => {
    notifier.stir()
    return turn.add([...ids], ids.length)
  }
}

interface Listed {
  record: TaggedRecord
  cursor: string
}

export async function list({ calls }: Context, { queue, state, limit, after }: ListRequest): Promise<ListedRecord[]> {
  const listed = await calls.answers<Listed>('list($1, $2, $3, $4)', [queue, state, limit, after ?? null])
  return listed.map(({ record, cursor }) => ({ ...recordFrom(record), cursor }))
}

export async function groups({ calls }: Context, request: GroupsRequest): Promise<GroupRecord[]> {
  const { queue, limit, after, group } = request
  return calls.answers('groups($1, $2, $3, $4, $5)', [queue, limit, after ?? null, group ?? null, calls.now()])
}

export async function ahead({ calls }: Context, id: string): Promise<number | null> {
  return calls.answer('ahead($1)', [id])
}
