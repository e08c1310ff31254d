/** Changes of jobs wherever they are. They exclude takes, so that no take moves a job that is being changed. */

import type { Input, Output } from '../../store.ts'
import type { FinalState, JobRecord } from '../../values/jobs/records.ts'
import type { Removed, Requeued, RestoreOutcome, UpdateOutcome } from '../../values/operations/requests.ts'
import { isFinal } from '../memory/job.ts'
import { frontOf } from './names.ts'
import type { Spill } from './spill.ts'
import { roomIn } from './spilled-queue.ts'

type Names = 'cancel' | 'update' | 'remove' | 'requeue' | 'restore'
type Next<Name extends Names> = (input: Input<Name>) => Promise<Output<Name>>

export function cancel(spill: Spill, { ids }: Input<'cancel'>, next: Next<'cancel'>): Promise<(FinalState | null)[]> {
  const { durable } = spill.stores
  const own = (ids: readonly string[]) => next({ ids })
  return each(
    spill,
    ids,
    (id) => id,
    own,
    (ids) => durable.operations.cancel({ ids }),
  )
}

export function update(spill: Spill, { items }: Input<'update'>, next: Next<'update'>): Promise<UpdateOutcome[]> {
  const { durable } = spill.stores
  const own = (items: Input<'update'>['items']) => next({ items })
  return each(
    spill,
    items,
    ({ id }) => id,
    own,
    (items) => durable.operations.update({ items }),
  )
}

export async function requeue(spill: Spill, request: Input<'requeue'>, next: Next<'requeue'>): Promise<Requeued> {
  const { durable } = spill.stores
  if ('ids' in request) {
    if (areInMemory(spill, request.ids)) return next(request)
    return changing(spill, async () => {
      const { own, others } = parted(spill, request.ids)
      const mine = await next({ ids: own })
      const theirs = await durable.operations.requeue({ ids: others })
      return { requeued: mine.requeued + theirs.requeued, now: mine.now }
    })
  }
  const mine = await next(request)
  const limit = request.limit - mine.requeued
  if (limit <= 0 || !spill.queues.has(request.queue)) return mine
  return changing(spill, async () => {
    const theirs = await durable.operations.requeue({ ...request, limit })
    return { requeued: mine.requeued + theirs.requeued, now: mine.now }
  })
}

export async function remove(spill: Spill, request: Input<'remove'>, next: Next<'remove'>): Promise<Removed> {
  const { durable } = spill.stores
  if ('ids' in request) {
    if (areInMemory(spill, request.ids)) return next(request)
    return changing(spill, async () => {
      const { own, others } = parted(spill, request.ids)
      const mine = await next({ ids: own })
      const theirs = await durable.operations.remove({ ids: others })
      return { removed: mine.removed + theirs.removed, more: false }
    })
  }
  const { queue, limit } = request
  if (!spill.queues.has(queue)) return next(request)
  return changing(spill, async () => {
    let { removed, more } = await next(request)
    for (const name of new Set([queue, frontOf(queue)])) {
      // With nothing left of the limit, the next call goes on here.
      if (more || removed >= limit) return { removed, more: true }
      const theirs = await durable.operations.remove({ ...request, queue: name, limit: limit - removed })
      removed += theirs.removed
      more = theirs.more
    }
    return { removed, more }
  })
}

/** Jobs go behind all that are there: to memory while there is room and none waits in the durable store. */
export async function restore(spill: Spill, input: Input<'restore'>, next: Next<'restore'>): Promise<RestoreOutcome[]> {
  const { durable, state } = spill.stores
  const { records } = input
  const live = Map.groupBy(
    records.filter((record) => !isFinal(record.state)),
    ({ queue }) => queue,
  )
  const hasRoom = [...live].every(([name, { length }]) => length <= roomIn(state, name))
  if (hasRoom && spill.queues.size === 0) return next(input)
  return changing(spill, async () => {
    const found = await durable.operations.find({ ids: records.map(({ id }) => id) })
    const outcomes: RestoreOutcome[] = records.map(() => 'existing')
    const own: number[] = []
    const others: number[] = []
    for (const [index, record] of records.entries()) {
      if (isKnown(spill, record) || found[index]) continue
      const fits = hasRoom && !spill.queues.get(record.queue)?.mayHaveLive
      if (isFinal(record.state) || fits) own.push(index)
      else others.push(index)
    }
    const at = (indexes: readonly number[]) => indexes.flatMap((index) => records[index] ?? [])
    const mine = own.length === 0 ? [] : await next({ records: at(own) })
    for (const [n, index] of own.entries()) outcomes[index] = mine[n] ?? 'existing'
    if (others.length === 0) return outcomes
    for (const { queue } of at(others)) spill.waits(state.findOrCreate(queue).name)
    const theirs = await durable.operations.restore({ records: at(others) })
    for (const [n, index] of others.entries()) outcomes[index] = theirs[n] ?? 'existing'
    return outcomes
  })
}

/** In memory, by its id or, if it is live, its key. */
function isKnown({ stores: { state } }: Spill, { id, key, queue, state: own }: JobRecord): boolean {
  return (
    state.jobs.get(id) !== undefined ||
    (key !== null && !isFinal(own) && state.queues.get(queue)?.keys.has(key) === true)
  )
}

/** A job that was changed may be one that waits now, of whatever priority. */
export async function changing<T>(spill: Spill, change: () => Promise<T>): Promise<T> {
  return spill.stores.exclusion.change(async () => {
    const answer = await change()
    spill.changed()
    return answer
  })
}

const isInMemory = ({ stores }: Spill, id: string): boolean => stores.state.jobs.get(id) !== undefined

const areInMemory = (spill: Spill, ids: readonly string[]): boolean =>
  spill.queues.size === 0 || ids.every((id) => isInMemory(spill, id))

function parted(spill: Spill, ids: readonly string[]): { own: string[]; others: string[] } {
  const { own = [], others = [] } = Object.groupBy(new Set(ids), (id) => (isInMemory(spill, id) ? 'own' : 'others'))
  return { own, others }
}

/** Changes jobs that memory has there, and the others in the durable store. @returns an outcome per item */
async function each<Item, Outcome>(
  spill: Spill,
  items: readonly Item[],
  idOf: (item: Item) => string,
  memory: (items: readonly Item[]) => Promise<Outcome[]>,
  durable: (items: readonly Item[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  if (areInMemory(spill, items.map(idOf))) return memory(items)
  return changing(spill, async () => {
    const isHere = items.map((item) => isInMemory(spill, idOf(item)))
    const own = await memory(items.filter((_, index) => isHere[index]))
    const others = await durable(items.filter((_, index) => !isHere[index]))
    let mine = 0
    let theirs = 0
    return isHere.flatMap((here) => (here ? own.slice(mine, ++mine) : others.slice(theirs, ++theirs)))
  })
}
