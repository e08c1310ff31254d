/** Changes of jobs wherever they are. Those of the durable store exclude takes, so that none changes a job that is on its way. */
import type {
  FinalState,
  Input,
  JobRecord,
  Output,
  Removed,
  Requeued,
  RestoreOutcome,
  UpdateOutcome,
} from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { within } from '../../values/within.ts'
import { isFinal } from '../memory/job.ts'
import { frontOf } from './names.ts'
import type { Spill } from './spill.ts'

type Names = 'cancel' | 'update' | 'remove' | 'requeue' | 'restore'
type Next<Name extends Names> = (input: Input<Name>) => Promise<Output<Name>>

/** Milliseconds that a change of a job waits for it to arrive in memory. */
const PATIENCE = 10_000

export function cancel(spill: Spill, { ids }: Input<'cancel'>, next: Next<'cancel'>): Promise<(FinalState | null)[]> {
  const { durable } = spill.stores
  return byId(
    spill,
    ids,
    same,
    (own) => next({ ids: own }),
    (ids) => durable.operations.cancel({ ids }),
  )
}

export function update(spill: Spill, { items }: Input<'update'>, next: Next<'update'>): Promise<UpdateOutcome[]> {
  const { durable } = spill.stores
  return byId(
    spill,
    items,
    ({ id }) => id,
    (own) => next({ items: own }),
    (others) => durable.operations.update({ items: others }),
  )
}

export async function requeue(spill: Spill, request: Input<'requeue'>, next: Next<'requeue'>): Promise<Requeued> {
  const { durable, state } = spill.stores
  if ('ids' in request) {
    const of = (call: Next<'requeue'>) => async (ids: readonly string[]) =>
      ids.length === 0 ? [] : [await call({ ids })]
    const answers = await inParts(spill, request.ids, same, of(next), of(durable.operations.requeue))
    const all = [...answers.own, ...answers.others]
    return { requeued: all.reduce((sum, { requeued }) => sum + requeued, 0), now: all[0]?.now ?? state.now() }
  }
  const own = await next(request)
  const left = request.limit - own.requeued
  if (left <= 0 || !spill.queues.has(request.queue)) return own
  const other = await spill.stores.exclusion.change(() => durable.operations.requeue({ ...request, limit: left }))
  if (other.requeued > 0) spill.waits(request.queue)
  return { requeued: own.requeued + other.requeued, now: own.now }
}

export async function remove(spill: Spill, request: Input<'remove'>, next: Next<'remove'>): Promise<Removed> {
  const { durable, exclusion } = spill.stores
  if ('ids' in request) {
    const of = (call: Next<'remove'>) => async (ids: readonly string[]) =>
      ids.length === 0 ? [] : [await call({ ids })]
    const answers = await inParts(spill, [...new Set(request.ids)], same, of(next), of(durable.operations.remove))
    const removed = [...answers.own, ...answers.others].reduce((sum, answer) => sum + answer.removed, 0)
    return { removed, more: false }
  }
  const own = await next(request)
  const { queue, limit } = request
  if (own.more || !spill.queues.has(queue)) return own
  let { removed } = own
  for (const name of new Set([queue, frontOf(queue)])) {
    // With nothing left of the limit, the next call goes on here.
    if (removed >= limit) return { removed, more: true }
    const other = await exclusion.change(() =>
      durable.operations.remove({ ...request, queue: name, limit: limit - removed }),
    )
    removed += other.removed
    if (other.more) return { removed, more: true }
  }
  return { removed, more: false }
}

/** Jobs go behind all that are there: to memory while there is room and none waits in the durable store. */
export async function restore(spill: Spill, input: Input<'restore'>, next: Next<'restore'>): Promise<RestoreOutcome[]> {
  const { durable, state, exclusion } = spill.stores
  const { records } = input
  if (
    spill.queues.size === 0 &&
    !records.some((record) => !isFinal(record.state) && isFull(spill, record.queue, records))
  ) {
    return next(input)
  }
  const found = await durable.operations.find({ ids: records.map(({ id }) => id) })
  const isThere = (index: number) => found[index] !== null && found[index] !== undefined
  const outcomes: RestoreOutcome[] = records.map(() => 'existing')
  const own: number[] = []
  const others: number[] = []
  for (const [index, record] of records.entries()) {
    const live = record.key === null ? undefined : state.queues.get(record.queue)?.keys.get(record.key)
    const isKnown = isThere(index) || state.jobs.get(record.id) !== undefined
    if (isKnown || (live !== undefined && !isFinal(record.state))) continue
    if (goesToMemory(spill, record, records)) own.push(index)
    else others.push(index)
  }
  const recordsAt = (indexes: readonly number[]) => indexes.flatMap((index) => records[index] ?? [])
  const mine = own.length === 0 ? [] : await next({ records: recordsAt(own) })
  for (const [at, index] of own.entries()) outcomes[index] = mine[at] ?? 'existing'
  if (others.length === 0) return outcomes
  const given = recordsAt(others)
  for (const { queue } of given) {
    state.findOrCreate(queue)
    spill.waits(queue)
  }
  const theirs = await exclusion.change(() => durable.operations.restore({ records: given }))
  for (const [at, index] of others.entries()) outcomes[index] = theirs[at] ?? 'existing'
  for (const { queue } of given) spill.waits(queue)
  return outcomes
}

function goesToMemory(spill: Spill, record: JobRecord, all: readonly JobRecord[]): boolean {
  const queue = spill.queues.get(record.queue)
  if (isFinal(record.state)) return true
  if (isFull(spill, record.queue, all)) return false
  return queue === undefined || !queue.mayHaveLive
}

/** Were all of them restored in memory, it would have more jobs than it takes. */
function isFull({ stores }: Spill, name: string, records: readonly JobRecord[]): boolean {
  const queue = stores.state.queues.get(name)
  if (queue === undefined || queue.settings.capacity === null) return false
  const more = records.filter((record) => record.queue === name).length
  return queue.waiting.size + queue.scheduled.size + more > queue.settings.capacity
}

const same = (id: string): string => id

async function byId<Item, Outcome>(
  spill: Spill,
  items: readonly Item[],
  idOf: (item: Item) => string,
  memory: (items: readonly Item[]) => Promise<Outcome[]>,
  durable: (items: readonly Item[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const { own, others, isHere } = await inParts(spill, items, idOf, memory, durable)
  let mine = 0
  let theirs = 0
  return isHere.flatMap((here) => (here ? own.slice(mine, ++mine) : others.slice(theirs, ++theirs)))
}

/** Changes jobs that memory has there, and the others in the durable store. */
async function inParts<Item, Outcome>(
  spill: Spill,
  items: readonly Item[],
  idOf: (item: Item) => string,
  memory: (items: readonly Item[]) => Promise<Outcome[]>,
  durable: (items: readonly Item[]) => Promise<Outcome[]>,
): Promise<{ own: Outcome[]; others: Outcome[]; isHere: boolean[] }> {
  const { state, exclusion } = spill.stores
  const inMemory = (item: Item) => state.jobs.get(idOf(item)) !== undefined
  if (spill.queues.size === 0 || items.every(inMemory)) {
    return { own: await memory(items), others: [], isHere: items.map(() => true) }
  }
  return exclusion.change(async () => {
    await arrived(spill, items.map(idOf))
    const isHere = items.map(inMemory)
    const own = await memory(items.filter((_, index) => isHere[index]))
    const others = await durable(items.filter((_, index) => !isHere[index]))
    spill.changed()
    return { own, others, isHere }
  })
}

/** @throws StoreUnavailable */
async function arrived({ queues }: Spill, ids: readonly string[]): Promise<void> {
  const until = performance.now() + PATIENCE
  for (const queue of queues.values()) {
    while (queue.arriving !== undefined && ids.some((id) => queue.coming.has(id))) {
      const left = until - performance.now()
      if (left <= 0) {
        throw new MillpondError('StoreUnavailable', 'the job is on its way from the spill store, which does not answer')
      }
      await within(left, queue.arriving)
    }
  }
}
