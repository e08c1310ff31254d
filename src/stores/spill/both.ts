/** What people and tools see: memory and the durable store as one. */
import type { Input, Output } from '../../store.ts'
import type { JobOutcome, JobRecord, JobState } from '../../values/jobs/records.ts'
import { JOB_STATES } from '../../values/jobs/records.ts'
import { cursorFields, cursorOf } from '../../values/operations/cursor.ts'
import type { Listed, ListedRecord, QueueStats, Totals } from '../../values/operations/requests.ts'
import type { GroupRecord } from '../../values/settings/limits.ts'
import { Groups } from '../memory/groups.ts'
import { ownerOf } from './names.ts'
import type { Spill } from './spill.ts'
import { NONE, TAKER, waiting } from './spilled-queue.ts'

type Next<Name extends 'find' | 'outcomes' | 'list' | 'groups' | 'stats' | 'ahead'> = (
  input: Input<Name>,
) => Promise<Output<Name>>

/** As the job is seen from here. One that a take has claimed waits. */
function seen(record: JobRecord): JobRecord {
  const queue = ownerOf(record.queue)
  const isTaken = record.state === 'running' && record.worker?.startsWith(TAKER)
  return isTaken ? waiting(record, queue) : { ...record, queue }
}

export async function find(spill: Spill, { ids }: Input<'find'>, next: Next<'find'>): Promise<(JobRecord | null)[]> {
  const { durable, exclusion, state } = spill.stores
  const areAllHere = ids.every((id) => state.jobs.get(id) !== undefined)
  if (spill.queues.size === 0 || areAllHere) return next({ ids })
  return exclusion.change(async () => {
    const records = await next({ ids })
    const left = ids.filter((_, index) => records[index] === null)
    const found = (await durable.operations.find({ ids: left })).values()
    return records.map((record) => record ?? seenOrNull(found.next().value))
  })
}

const seenOrNull = (record: JobRecord | null | undefined): JobRecord | null => (record ? seen(record) : null)

/** What is in the durable store has not ended: what runs there is on its way back. */
export async function outcomes(
  spill: Spill,
  { ids }: Input<'outcomes'>,
  next: Next<'outcomes'>,
): Promise<(JobOutcome | null)[]> {
  const { durable, exclusion } = spill.stores
  if (spill.queues.size === 0) return next({ ids })
  return exclusion.change(async () => {
    const own = await next({ ids })
    const left = own.flatMap((outcome, at) => (outcome === null ? (ids[at] ?? []) : []))
    if (left.length === 0) return own
    const found = await durable.operations.outcomes({ ids: left })
    const there = new Map(found.map((outcome, at) => [left[at], outcome]))
    const end = own.findIndex((outcome, at) => outcome === null && !there.has(ids[at]))
    return own.slice(0, end < 0 ? own.length : end).map((outcome, at) => {
      const other = there.get(ids[at]) ?? null
      if (outcome !== null || other === null) return outcome
      return { ...other, queue: ownerOf(other.queue), state: other.state === 'running' ? 'waiting' : other.state }
    })
  })
}

/** Of each priority, jobs in memory come before those in the durable store. */
export async function ahead(spill: Spill, { id }: Input<'ahead'>, next: Next<'ahead'>): Promise<number | null> {
  const { durable, exclusion, state } = spill.stores
  if (spill.queues.size === 0) return next({ id })
  return exclusion.change(async () => {
    const own = await next({ id })
    const job = state.jobs.get(id)
    if (job !== undefined) return own === null ? null : Math.min(MOST_COUNTED, own + (await higherThere(spill, job)))
    const count = await durable.operations.ahead({ id })
    const [record] = await durable.operations.find({ ids: [id] })
    if (count === null || !record) return null
    return Math.min(MOST_COUNTED, count + inMemoryBefore(spill, record))
  })
}

/** What `ahead` counts among: the jobs of the queue, or of the job's group where groups take turns. */
type Place = Pick<JobRecord, 'queue' | 'priority' | 'group'>

const isGrouped = ({ stores }: Spill, queue: string): boolean =>
  stores.state.queues.get(queue)?.waiting instanceof Groups

function inMemoryBefore(spill: Spill, { queue: name, priority, group }: Place): number {
  const queue = ownerOf(name)
  let count = 0
  for (const job of spill.stores.state.queues.get(queue)?.waiting.after(null) ?? []) {
    if (job.priority < priority || count === MOST_COUNTED) break
    if (job.group === group || !isGrouped(spill, queue)) count++
  }
  return count
}

/** How many jobs of a higher priority wait in the durable store. Mostly none: claims bring them back first. */
async function higherThere(spill: Spill, { queue, priority, group }: Place): Promise<number> {
  if ((spill.queues.get(queue)?.highest ?? NONE) <= priority) return 0
  const filter = isGrouped(spill, queue) ? { filter: { group: group ?? '' } } : {}
  let count = 0
  for (let after: string | null | undefined; after !== null && count < MOST_COUNTED; ) {
    const page = {
      queue,
      state: 'waiting' as const,
      limit: MOST_LISTED,
      ...filter,
      ...(after !== undefined && { after }),
    }
    const { jobs, next } = await spill.stores.durable.operations.list(page)
    const higher = jobs.filter((job) => job.priority > priority).length
    count += higher
    if (higher < jobs.length) break
    after = next
  }
  return count
}

const MOST_COUNTED = 1_000
const MOST_LISTED = 100

export async function stats(spill: Spill, input: Input<'stats'>, next: Next<'stats'>): Promise<QueueStats[]> {
  if (spill.queues.size === 0 || (input.queue !== undefined && !spill.queues.has(input.queue))) return next(input)
  return spill.stores.exclusion.change(() => merged(spill, input, next))
}

async function merged(spill: Spill, input: Input<'stats'>, next: Next<'stats'>): Promise<QueueStats[]> {
  const own = await next(input)
  // A queue and its front are two there.
  const all = await spill.stores.durable.operations.stats({})
  const byName = new Map(own.map((each) => [each.queue, each]))
  for (const each of all) {
    const owner = ownerOf(each.queue)
    if (input.queue !== undefined && input.queue !== owner) continue
    const known = byName.get(owner)
    if (known !== undefined) byName.set(owner, sum(known, each))
    else if (Object.values(each.counts).some((count) => count > 0)) byName.set(owner, sum(emptied(each, owner), each))
  }
  return [...byName.values()]
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

/** The durable store takes part in no limit, so all but the waiting jobs is memory's. */
export async function groups(spill: Spill, input: Input<'groups'>, next: Next<'groups'>): Promise<GroupRecord[]> {
  const { durable, exclusion } = spill.stores
  if (!spill.queues.has(input.queue) || !durable.capabilities.groups) return next(input)
  return exclusion.change(async () => {
    const byName = new Map((await next(input)).map((record) => [record.group, record]))
    for (const other of await durable.operations.groups(input)) {
      const known = byName.get(other.group)
      const waiting = (known?.waiting ?? 0) + other.waiting
      if (known !== undefined) byName.set(other.group, { ...known, waiting })
      else if (waiting > 0) byName.set(other.group, { ...other, limits: null, waiting, running: 0, nextStart: 0 })
    }
    const inOrder = [...byName.values()].sort((a, b) => Buffer.compare(Buffer.from(a.group), Buffer.from(b.group)))
    return inOrder.slice(0, input.limit)
  })
}

/** Pages of both, merged. Its cursor holds where the page ended in each: fields of the one, a dash, fields of the other. */
export async function list(spill: Spill, request: Input<'list'>, next: Next<'list'>): Promise<Listed> {
  const { queue, state, after } = request
  const from = placesIn(state, after)
  // What runs in the durable store is on its way back. Soon it waits in memory.
  if (!spill.queues.has(queue) || state === 'running') {
    return from.memory === ENDED ? { jobs: [], next: null } : next(withAfter(request, from.memory))
  }
  const spilled = spill.queue(queue)
  if (spilled.front) await spilled.takeFirst(1, 0)
  const { durable, exclusion } = spill.stores
  const none: Listed = { jobs: [], next: null }
  return exclusion.change(async () => {
    const [own, other] = await Promise.all([
      from.memory === ENDED ? none : next(withAfter(request, from.memory)),
      from.durable === ENDED ? none : durable.operations.list(withAfter(request, from.durable)),
    ])
    return merge(request, from, own, other)
  })
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
  const fieldsOf = (end: string) => (end === BEGIN || end === ENDED ? [end] : (cursorFields(state, end) ?? []))
  return cursorOf(state, ...fieldsOf(memory), '-', ...fieldsOf(durable))
}

function withAfter({ after: _, ...request }: Input<'list'>, end: string): Input<'list'> {
  return end === BEGIN ? request : { ...request, after: end }
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
