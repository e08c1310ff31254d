/** What people and tools see: memory and the durable store as one. */
import type { Input, JobRecord, JobState, Listed, ListedRecord, Output, QueueStats, Totals } from '../../store.ts'
import { JOB_STATES } from '../../store.ts'
import { cursorFields, cursorOf } from '../../values/cursor.ts'
import { Groups } from '../memory/groups.ts'
import { ownerOf } from './names.ts'
import type { Spill } from './spill.ts'
import { TAKER, waiting } from './spilled-queue.ts'

type Next<Name extends 'find' | 'list' | 'stats' | 'ahead'> = (input: Input<Name>) => Promise<Output<Name>>

/** As the job is seen from here. One that a take has claimed waits. */
function seen(record: JobRecord): JobRecord {
  const queue = ownerOf(record.queue)
  const isTaken = record.state === 'running' && record.worker?.startsWith(TAKER)
  return isTaken ? waiting(record, queue) : { ...record, queue }
}

export async function find(spill: Spill, { ids }: Input<'find'>, next: Next<'find'>): Promise<(JobRecord | null)[]> {
  const records = await next({ ids })
  if (spill.queues.size === 0 || records.every((record) => record !== null)) return records
  const left = ids.filter((_, index) => records[index] === null)
  const found = await spill.stores.durable.operations.find({ ids: left })
  // Those that came meanwhile are in neither answer.
  const again = await next({ ids: left })
  let at = 0
  return records.map((record, index) => {
    if (record !== null) return record
    const other = found[at] ?? null
    const late = again[at++] ?? comingIn(spill, ids[index] ?? '')
    return late ?? (other === null ? null : seen(other))
  })
}

function comingIn({ queues }: Spill, id: string): JobRecord | null {
  for (const { coming } of queues.values()) {
    const record = coming.get(id)
    if (record !== undefined) return structuredClone(record)
  }
  return null
}

export async function ahead(spill: Spill, { id }: Input<'ahead'>, next: Next<'ahead'>): Promise<number | null> {
  const own = await next({ id })
  if (own !== null || spill.queues.size === 0) return own
  const { durable, state } = spill.stores
  const [found] = await durable.operations.find({ ids: [id] })
  const count = await durable.operations.ahead({ id })
  if (!found || count === null) return null
  const inMemory = state.queues.get(ownerOf(found.queue))?.waiting
  if (inMemory === undefined || inMemory instanceof Groups) return count
  let before = 0
  for (const { priority } of inMemory.after(null)) {
    if (priority < found.priority || before === MOST_COUNTED) break
    before++
  }
  return Math.min(MOST_COUNTED, count + before)
}

const MOST_COUNTED = 1_000

export async function stats(spill: Spill, input: Input<'stats'>, next: Next<'stats'>): Promise<QueueStats[]> {
  const own = await next(input)
  if (spill.queues.size === 0 || (input.queue !== undefined && !spill.queues.has(input.queue))) return own
  const { durable } = spill.stores
  // A queue and its front are two there.
  const all = await durable.operations.stats({})
  const merged = new Map(own.map((each) => [each.queue, each]))
  for (const each of all) {
    const owner = ownerOf(each.queue)
    if (input.queue !== undefined && input.queue !== owner) continue
    const known = merged.get(owner)
    if (known !== undefined) merged.set(owner, sum(known, each))
    else if (Object.values(each.counts).some((count) => count > 0)) merged.set(owner, sum(emptied(each, owner), each))
  }
  return [...merged.values()]
}

function sum(memory: QueueStats, durable: QueueStats): QueueStats {
  const counts = { ...memory.counts }
  // What runs there is on its way back.
  for (const state of JOB_STATES) counts[state === 'running' ? 'waiting' : state] += durable.counts[state]
  const totals = { ...memory.totals }
  for (const name of Object.keys(totals) as (keyof Totals)[]) totals[name] += durable.totals[name]
  const ages = [memory.oldestWaiting, durable.oldestWaiting].filter((age) => age !== null)
  return { ...memory, counts, totals, oldestWaiting: ages.length === 0 ? null : Math.max(...ages) }
}

/** A queue of which nothing is in memory. */
function emptied(durable: QueueStats, queue: string): QueueStats {
  const none = <Name extends string>(names: Record<Name, number>): Record<Name, number> =>
    Object.fromEntries(Object.keys(names).map((name) => [name, 0])) as Record<Name, number>
  return {
    ...{ queue, paused: false, capacity: null, overrides: {}, lastClaim: null, oldestWaiting: null, limits: null },
    ...{ counts: none(durable.counts), totals: none(durable.totals), histograms: [] },
    ...{ nextStart: 0, groupsAtLimit: 0, groupsHeld: 0 },
  }
}

/** Pages of both, merged. Its cursor holds where the page ended in each: fields of the one, a dash, fields of the other. */
export async function list(spill: Spill, request: Input<'list'>, next: Next<'list'>): Promise<Listed> {
  const { queue, state, after } = request
  const from = placesIn(state, after)
  // What runs in the durable store is on its way back. Soon it waits in memory.
  if (!spill.queues.has(queue) || state === 'running') {
    return from.memory === ENDED ? { jobs: [], next: null } : next(withAfter(request, from.memory))
  }
  const { durable } = spill.stores
  const none: Listed = { jobs: [], next: null }
  const [own, other] = await Promise.all([
    from.memory === ENDED ? none : next(withAfter(request, from.memory)),
    from.durable === ENDED ? none : durable.operations.list(withAfter(request, from.durable)),
  ])
  return merge(request, from, own, other)
}

/** Before the first job, and behind the last one; else the cursor. */
const BEGIN = 'b'
const ENDED = 'e'
type Places = { memory: string; durable: string }

function placesIn(state: JobState, after: string | undefined): Places {
  const fields = (after === undefined ? undefined : cursorFields(state, after)) ?? [BEGIN]
  const dash = fields.indexOf('-')
  const own = dash < 0 ? fields : fields.slice(0, dash)
  const other = dash < 0 ? [BEGIN] : fields.slice(dash + 1)
  const textOf = (part: readonly string[]) =>
    part.length === 1 && (part[0] === BEGIN || part[0] === ENDED) ? part[0] : cursorOf(state, ...part)
  return { memory: textOf(own), durable: textOf(other) }
}

function cursorAt(state: JobState, { memory, durable }: Places): string {
  const fieldsOf = (place: string) =>
    place === BEGIN || place === ENDED ? [place] : (cursorFields(state, place) ?? [])
  return cursorOf(state, ...fieldsOf(memory), '-', ...fieldsOf(durable))
}

function withAfter({ after: _, ...request }: Input<'list'>, place: string): Input<'list'> {
  return place === BEGIN ? request : { ...request, after: place }
}

function merge({ state, limit }: Input<'list'>, from: Places, own: Listed, other: Listed): Listed {
  const at = { ...from }
  const jobs: ListedRecord[] = []
  let mine = 0
  let theirs = 0
  while (jobs.length < limit) {
    const a = own.jobs[mine]
    const b = other.jobs[theirs]
    if (a === undefined && b === undefined) break
    const isMine = b === undefined || (a !== undefined && !comesFirst(b, a, state))
    const job = isMine ? a : b
    if (job === undefined) break
    if (isMine) mine++
    else theirs++
    at[isMine ? 'memory' : 'durable'] = job.cursor
    jobs.push({ ...job, ...(isMine ? {} : seen(job)), cursor: cursorAt(state, at) })
  }
  if (mine === own.jobs.length) at.memory = own.next ?? ENDED
  if (theirs === other.jobs.length) at.durable = other.next ?? ENDED
  const isOver = at.memory === ENDED && at.durable === ENDED
  return { jobs, next: isOver ? null : cursorAt(state, at) }
}

function comesFirst(a: JobRecord, b: JobRecord, state: JobState): boolean {
  if (state === 'waiting') return a.priority > b.priority
  if (state === 'scheduled') return a.dueAt < b.dueAt
  return (a.finishedAt ?? 0) > (b.finishedAt ?? 0)
}
