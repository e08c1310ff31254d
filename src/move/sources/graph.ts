/** What a move must know of the graphs of its source: a job is moved before those that it waits for. */
import type { Store } from '../../store.ts'
import type { JobRecord, JobState } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'

const MOST = DEFAULTS.bounds.parents.most
/** Ids of a call. */
const BATCH = 1000

const isLive = (state: JobState | undefined): boolean => state !== 'done' && state !== 'dead' && state !== 'cancelled'

/** Blocked records, with the jobs that they wait for. */
export async function withParents(store: Store, records: readonly JobRecord[]): Promise<JobRecord[]> {
  const blocked = records.filter(({ state }) => state === 'blocked')
  if (blocked.length === 0) return [...records]
  const relatives = await store.operations.relatives({ ids: blocked.map(({ id }) => id), limit: MOST })
  const parents = new Map(
    blocked.map(({ id }, at) => [id, relatives[at]?.state === 'blocked' ? relatives[at].parents : []]),
  )
  const places = await placesOf(store, [...parents.values()].flat())
  return records.map((record) => {
    const own = parents.get(record.id)
    if (own === undefined) return record
    const open = own.filter((id) => isLive(places.get(id)?.state))
    // One that has ended is still to be settled: the target settles it when it comes there.
    return { ...record, after: open.length === record.waitsFor ? open : own }
  })
}

/** Where jobs are, by id. Those that are not there are left out. */
export async function placesOf(
  { operations }: Store,
  ids: readonly string[],
): Promise<Map<string, { queue: string; state: JobState }>> {
  const places = new Map<string, { queue: string; state: JobState }>()
  const all = [...new Set(ids)]
  for (let at = 0; at < all.length; at += BATCH) {
    const some = all.slice(at, at + BATCH)
    for (const [index, one] of (await operations.relatives({ ids: some, limit: 1 })).entries()) {
      const id = some[index]
      if (one !== null && id !== undefined) places.set(id, one)
    }
  }
  return places
}

/** The blocked jobs that wait for these, other than they themselves; by the jobs' ids, the ids of those. */
export async function childrenOf(store: Store, records: readonly JobRecord[]): Promise<Map<string, string[]>> {
  const live = records.filter(({ state }) => isLive(state)).map(({ id }) => id)
  if (live.length === 0) return new Map()
  const own = new Set(live)
  const relatives = await store.operations.relatives({ ids: live, limit: MOST })
  const children = relatives.map((one) => one?.children.filter((id) => !own.has(id)) ?? [])
  const places = await placesOf(store, children.flat())
  const blocked = children.map((ids) => ids.filter((id) => places.get(id)?.state === 'blocked'))
  return new Map(live.flatMap((id, at) => (blocked[at]?.length ? [[id, blocked[at]]] : [])))
}
