import type { GroupsRequest, Listed, ListRequest } from '../../../values/operations/requests.ts'
import type { GroupRecord } from '../../../values/settings/limits.ts'
import type { StoreContext } from '../context.ts'
import { recordFrom, type TaggedRecord } from '../wire.ts'

interface Answer {
  jobs: (TaggedRecord & { cursor: string })[]
  next: string | null
}

export async function list({ calls }: StoreContext, request: ListRequest): Promise<Listed> {
  const { queue, state, limit, after, filter } = request
  const values = [queue, state, limit, after ?? null, filter === undefined ? null : JSON.stringify(filter)]
  const { jobs, next } = await calls.answer<Answer>('list($1, $2, $3, $4, $5)', values)
  return { jobs: jobs.map(({ cursor, ...record }) => ({ ...recordFrom(record), cursor })), next }
}

export async function groups({ calls }: StoreContext, request: GroupsRequest): Promise<GroupRecord[]> {
  const { queue, limit, after, group } = request
  return calls.answers('groups($1, $2, $3, $4, $5)', [queue, limit, after ?? null, group ?? null, calls.now()])
}
