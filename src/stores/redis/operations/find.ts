/**
 * Reads jobs: `find` by id, `list` by state. An id does not name its queue. This process remembers the partitions of the jobs that it pushed last.
 * For other ids, one call asks all partitions of a bucket, so a look-up takes at most `BUCKETS` calls for any number of queues.
 */

import {
  type GroupsRequest,
  JOB_STATES,
  type JobRecord,
  type JobState,
  type ListedRecord,
  type ListRequest,
} from '../../../store.ts'
import { cursorFields, cursorOf } from '../../../values/cursor.ts'
import { MillpondError } from '../../../values/errors.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import { groupIndex, type Partition } from '../partition.ts'
import { askEach, chunks, Failures, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import {
  bytesIn,
  encodedIn,
  idBytes,
  idText,
  jobErrorIn,
  leastOf,
  listBefore,
  numberIn,
  numberOrNull,
  rateIn,
  recordIn,
  textIn,
  timeOrNull,
  unexpected,
} from '../wire.ts'

/** A job, and where it is. */
interface Found {
  partition: Partition
  record: JobRecord
  place: number
  /** What its state is ordered by: when it was pushed (waiting), is due (scheduled), loses its lease (running) or finished. */
  time: number
}

export async function find(context: Context, ids: readonly string[]): Promise<(Found | null)[]> {
  return askOwners(context, ids, async (partition, own) => {
    const { left, found } = foundIn(
      partition,
      await callScript(context, 'find', partition, { items: own.map(idBytes) }),
    )
    const byId = new Map(found.map((one) => [one.record.id, one]))
    return own.slice(0, own.length - left).map((id) => byId.get(id) ?? null)
  })
}

/**
 * The answer of the first partition that knows the id, which is asked once for each time that it is named. Queues that are new to this process are
 * asked for what the others don't know. Rejects where nobody that answered knows an id, and somebody did not answer.
 */
export async function askOwners<Answer>(
  context: Context,
  ids: readonly string[],
  call: (partition: Partition, ids: readonly string[]) => Promise<readonly (Answer | null)[]>,
): Promise<(Answer | null)[]> {
  const { calls, queues, locations } = context
  calls.assertOpen()
  const answers: (Answer | null)[] = ids.map(() => null)
  const failures = new Failures()
  const askThere = async (locationOf: (id: string) => Partition | undefined): Promise<void> => {
    const open = (id: string, at: number) => (answers[at] === null ? locationOf(id) : undefined)
    for (const [at, answer] of (await askEach(ids, open, call)).entries()) {
      if (answer instanceof MillpondError) await failures.noted(Promise.reject(answer))
      else if (answer !== undefined) answers[at] = answer
    }
  }
  const askAmong = async (partitions: readonly Partition[]): Promise<void> => {
    const unknown = [...new Set(ids.filter((_, at) => answers[at] === null))]
    if (unknown.length === 0 || partitions.length === 0) return
    const located = await locate(context, partitions, unknown, failures)
    await askThere((id) => located.get(id))
  }
  await askThere((id) => locations.get(id))
  const known = new Set([...queues.allKnown().values()].flat())
  await askAmong([...known])
  if (answers.includes(null)) {
    const listed = (await failures.noted(queues.all())) ?? new Map<string, readonly Partition[]>()
    await askAmong([...listed.values()].flat().filter((partition) => !known.has(partition)))
  }
  if (answers.includes(null)) failures.throwFirst()
  return answers
}

/** Keys and ids of one call to `locate`, which looks each up in each. */
const MAX_KEYS_PER_CALL = 250
const MAX_LOOKS_PER_CALL = 5_000

async function locate(
  { calls }: Context,
  partitions: readonly Partition[],
  ids: readonly string[],
  failures: Failures,
): Promise<Map<string, Partition>> {
  const located = new Map<string, Partition>()
  const ask = async (tag: string, some: readonly Partition[], asked: readonly string[]) => {
    const keys = some.map((partition) => partition.key('jobs'))
    const numbers = await calls.script('locate', { tag, keys }, asked.map(idBytes))
    for (const [i, id] of asked.entries()) {
      const partition = some[numberIn(numbers[i]) - 1]
      if (partition !== undefined) located.set(id, partition)
    }
  }
  const byTag = Map.groupBy(partitions, ({ tag }) => tag)
  await Promise.all(
    [...byTag].flatMap(([tag, all]) =>
      chunks(all, MAX_KEYS_PER_CALL).flatMap((some) =>
        chunks(ids, Math.floor(MAX_LOOKS_PER_CALL / some.length)).map((asked) => failures.noted(ask(tag, some, asked))),
      ),
    ),
  )
  return located
}

export async function list(context: Context, { queue, state, limit, after }: ListRequest): Promise<ListedRecord[]> {
  context.calls.assertOpen()
  const partitions = (await context.queues.listed(queue)) ?? (await context.queues.look(queue))
  let last = after === undefined ? undefined : placeIn(state, after)
  const records: ListedRecord[] = []
  // What a script does is bounded, so a long list is several.
  while (records.length < limit) {
    const most = Math.min(limit - records.length, MAX_ITEMS_PER_CALL)
    const { page, more } = await listPage(context, partitions, state, most, last)
    const places = page.map(placeOf)
    records.push(...page.map(({ record }, index) => ({ ...record, cursor: cursorText(state, places[index]) })))
    last = places.at(-1) ?? last
    if (page.length < most && !more) break
  }
  return records
}

async function listPage(
  context: Context,
  partitions: readonly Partition[],
  state: JobState,
  limit: number,
  last: Place | undefined,
): Promise<{ page: Found[]; more: boolean }> {
  const pages = await Promise.all(
    partitions.map(async (partition) => {
      const head = [state, limit, last === undefined ? null : cursorFor(partition, last)]
      const items = last?.partition === partition.index ? [idBytes(last.id)] : []
      return foundIn(partition, await callScript(context, 'list', partition, { head, items }))
    }),
  )
  const merged = pages.flatMap(({ found }) => found)
  if (pages.length > 1) merged.sort(inOrderOf(state))
  // What comes after the last job of a page that is cut short may come after others of its partition.
  const ends = pages.flatMap(({ left, found }) => (left > 0 ? merged.indexOf(found.at(-1) as Found) + 1 : []))
  return { page: merged.slice(0, Math.min(limit, ...ends)), more: ends.length > 0 }
}

const isFinal = (state: JobState): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

/** Over partitions: by time, and jobs of the same time by partition. Each partition gives its own in its own order. */
function inOrderOf(state: JobState): (a: Found, b: Found) => number {
  const sign = isFinal(state) ? -1 : 1
  const byPriority = (a: Found, b: Found) => (state === 'waiting' ? b.record.priority - a.record.priority : 0)
  return (a, b) => byPriority(a, b) || (a.time - b.time) * sign || a.partition.index - b.partition.index
}

/** Where a job stands in a list: the fields of its cursor, in this order. `partition`: its index. */
interface Place {
  priority: number
  time: number
  place: number
  partition: number
  id: string
}

const placeOf = ({ record: { id, priority }, time, place, partition: { index } }: Found): Place => {
  return { priority, time, place, partition: index, id }
}

const cursorText = (state: JobState, place: Place | undefined): string => cursorOf(state, ...Object.values(place ?? {}))

function placeIn(state: JobState, cursor: string): Place | undefined {
  const [priority, time, place, partition, id = ''] = cursorFields(state, cursor) ?? []
  if (id === '') return undefined
  return { priority: Number(priority), time: Number(time), place: Number(place), partition: Number(partition), id }
}

/** As `list.lua` takes it: [own, priority, place, time, ties]. */
function cursorFor({ index }: Partition, { priority, time, place, partition }: Place): unknown[] {
  const own = index === partition
  return [own, priority, own ? place : false, time, index > partition]
}

const PER_JOB = 11

/** As `described.lua` answers. */
function foundIn(partition: Partition, [left, ...reply]: readonly unknown[]): { left: number; found: Found[] } {
  const found = chunks(reply, PER_JOB).map(
    ([id, stateText, attempt, due, started, end, worker, progress, error, result, kept]) => {
      const state = stateIn(stateText)
      const { place, ...rest } = recordIn(bytesIn(kept))
      const dueAt = numberIn(due) || rest.pushedAt
      const finished = numberIn(end)
      const record: JobRecord = {
        id: idText(bytesIn(id)),
        queue: partition.queue,
        state,
        attempt: numberIn(attempt),
        dueAt,
        startedAt: numberIn(started) || null,
        finishedAt: state === 'running' ? null : finished || null,
        worker: worker === null ? null : textIn(worker),
        progress: progress === null ? null : encodedIn(bytesIn(progress)),
        error: error === null ? null : jobErrorIn(bytesIn(error)),
        result: result === null ? null : encodedIn(bytesIn(result)),
        ...rest,
      }
      return {
        partition,
        record,
        place,
        time: state === 'waiting' ? rest.pushedAt : state === 'scheduled' ? dueAt : finished,
      }
    },
  )
  return { left: numberIn(left), found }
}

function stateIn(value: unknown): JobState {
  const text = textIn(value)
  const state = JOB_STATES.find((known) => known === text)
  if (state === undefined) throw unexpected(value, 'a state')
  return state
}

const PER_GROUP = 5

/** A group is in one partition; only the jobs without one are in several. */
export async function groups(context: Context, request: GroupsRequest): Promise<GroupRecord[]> {
  context.calls.assertOpen()
  const { queue, limit, after, group } = request
  if (group !== undefined && after !== undefined && group <= after) return []
  const partitions = (await context.queues.listed(queue)) ?? (await context.queues.look(queue))
  const home = group === undefined || group === '' ? undefined : groupIndex(partitions.length, group)
  const asked = home === undefined ? partitions : partitions.slice(home, home + 1)
  const pages = await Promise.all(asked.map((partition) => groupsIn(context, partition, request)))
  const [only = []] = pages
  if (pages.length === 1) return only
  const ungrouped = pages.flatMap(([first]) => (first?.group === '' ? [first] : []))
  const named = pages.flat().filter((record) => record.group !== '')
  named.sort((a, b) => Buffer.compare(Buffer.from(a.group), Buffer.from(b.group)))
  return [...(ungrouped.length > 0 ? [ungrouped.reduce(added)] : []), ...named].slice(0, limit)
}

/** The jobs without a group, in two partitions. */
const added = (a: GroupRecord, b: GroupRecord): GroupRecord => ({
  group: a.group,
  limits: a.limits && b.limits && { ...a.limits, running: (a.limits.running ?? 0) + (b.limits.running ?? 0) || null },
  waiting: a.waiting + b.waiting,
  running: a.running + b.running,
  nextStart: leastOf(a.nextStart, b.nextStart),
})

async function groupsIn(
  context: Context,
  partition: Partition,
  { limit, after, group }: GroupsRequest,
): Promise<GroupRecord[]> {
  const records: GroupRecord[] = []
  for (let from: string | null = after ?? null; records.length < limit; ) {
    const most = Math.min(limit - records.length, MAX_ITEMS_PER_CALL)
    const [last, ...items] = await callScript(context, 'groups', partition, { head: [most, from, group ?? null] })
    const page = chunks(items, PER_GROUP).map(([name, own, waiting, running, next]) => ({
      group: textIn(name),
      limits: groupLimitsIn(bytesIn(own), textIn(name) === '' ? partition.count : 1),
      waiting: numberIn(waiting),
      running: numberIn(running),
      nextStart: timeOrNull(next),
    }))
    records.push(...page)
    if (last === null) break
    from = textIn(last)
  }
  return records
}

/** @param partitions that share them */
function groupLimitsIn(bytes: Buffer, partitions: number): GroupRecord['limits'] {
  if (bytes.length === 0) return null
  const [running, rate, weight] = listBefore(bytes).list
  return { running: numberOrNull(running), rate: rateIn(rate, partitions), weight: numberIn(weight) }
}

export async function ahead(context: Context, id: string): Promise<number | null> {
  const [count = null] = await askOwners<number>(context, [id], async (partition, own) => {
    const answers = await callScript(context, 'ahead', partition, { items: own.map(idBytes) })
    return answers.map(timeOrNull)
  })
  return count
}
