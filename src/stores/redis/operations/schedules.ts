/**
 * Schedules lie under keys of the whole store, and the jobs that they push in the queues' partitions, on other servers of a cluster. So a
 * firing has three steps:
 *
 *   due ──firing: one process moves the next time on──► decided ──fire: the jobs are pushed, each once──► pushed ──fired──► forgotten
 *
 * A process that ends after the first step has fired: the next sweep of any process pushes the jobs, and forgets the firing.
 */

import type { Input } from '../../../store.ts'
import type { MillpondError } from '../../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../../values/jobs/records.ts'
import type { DeclareOutcome, FireOutcome, Firing, ScheduleRecord } from '../../../values/schedules/records.ts'
import { DECLARE_OUTCOMES } from '../../../values/schedules/records.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { chunks } from '../per-partition.ts'
import { type Decision, homeOf, pushBy } from '../pusher.ts'
import { firingBytes, firingIn, scheduledBytes, scheduleIn } from '../schedule-wire.ts'
import { bytesIn, idBytes, numberIn, pack, textIn, timeOrNull, unexpected } from '../wire.ts'

const MOST_DUE = DEFAULTS.schedule.due

export async function declare(context: StoreContext, { schedules }: Input<'declare'>): Promise<DeclareOutcome[]> {
  context.calls.assertOpen()
  if (schedules.length === 0) return []
  const lists = schedules.map(({ name, version, when, tz, missed, jitter, from, until, paused, again }) => [
    ...[name, version, when, tz, missed, jitter, from ?? false, until ?? false, paused, again],
  ])
  const jobs = schedules.map(({ job }) => scheduledBytes(job))
  const outcomes = await ask(context, 'declare', [pack([context.now(), lists]), ...jobs], true)
  return outcomes.map((outcome) => {
    const told = DECLARE_OUTCOMES.find((known) => known === textIn(outcome))
    if (told === undefined) throw unexpected(outcome, 'an outcome of declare')
    return told
  })
}

export async function schedules(
  context: StoreContext,
  { limit, after, name }: Input<'schedules'>,
): Promise<ScheduleRecord[]> {
  const [now, ...items] = await ask(context, 'schedules', [context.now() ?? '', limit, after ?? '', name ?? ''])
  return recordsIn(items, numberIn(now))
}

export async function pauseSchedule(context: StoreContext, { name, paused }: Input<'pauseSchedule'>): Promise<boolean> {
  const [known] = await ask(context, 'pause-schedule', [context.now() ?? '', name, paused ? 1 : 0], true)
  return known === 1
}

export async function removeSchedule(context: StoreContext, { name }: Input<'removeSchedule'>): Promise<boolean> {
  const [known] = await ask(context, 'remove-schedule', [name], true)
  return known === 1
}

/** @throws what kept jobs of any firing from being pushed; the others were fired, and a sweep pushes what it can of those */
export async function fire(context: StoreContext, { firings }: Input<'fire'>): Promise<FireOutcome[]> {
  context.calls.assertOpen()
  if (firings.length === 0) return []
  const roomy = await withRoom(context, firings)
  const asked = firings.filter((_, at) => roomy[at])
  const { taken, ...decision } = asked.length === 0 ? { now: 0, since: 0, taken: [] } : await decide(context, asked)
  const decided = asked.filter((_, at) => taken[at])
  const { outcomes, error } = await finish(
    context,
    decided.map(({ jobs }) => jobs),
    decision,
  )
  if (error !== undefined) throw error
  const fired = new Map(decided.map((firing, at) => [firing, outcomes[at] ?? []]))
  return firings.map((firing, at): FireOutcome => {
    const jobs = fired.get(firing)
    return jobs !== undefined ? { status: 'fired', jobs } : { status: roomy[at] ? 'stale' : 'full' }
  })
}

/** @returns also per firing whether it takes place */
async function decide(
  context: StoreContext,
  firings: readonly Firing[],
): Promise<Decision & { taken: readonly boolean[] }> {
  const lists = firings.map(({ name, version, expected, next }) => [name, version, expected, next ?? false])
  const bytes = firings.flatMap(({ jobs }): (string | Buffer)[] => {
    const [first] = jobs
    return first === undefined ? ['', ''] : [idBytes(first.id), firingBytes(jobs)]
  })
  const [now, since, ...answers] = await ask(context, 'firing', [pack([context.now(), lists]), ...bytes], true)
  return { now: numberIn(now), since: numberIn(since), taken: answers.map((answer) => answer === 1) }
}

/**
 * Pushes the jobs of firings that take place, a list for each, and forgets those firings.
 * @returns what became of each list, and the first error
 */
async function finish(
  context: StoreContext,
  lists: readonly (readonly NewJob[])[],
  decision: Decision,
): Promise<{ outcomes: PushOutcome[][]; error?: MillpondError | undefined }> {
  const pushed = await pushBy(context, lists.flat(), { name: 'fire', ...decision })
  const outcomes = lists.map((jobs) => pushed.splice(0, jobs.length))
  // What the queue can never take is not tried again.
  const isOver = (outcome: PushOutcome) => outcome.error === undefined || outcome.error.code === 'NotSupported'
  const over = lists.filter((_, at) => outcomes[at]?.every(isOver))
  const ids = over.flatMap(([first]) => (first === undefined ? [] : idBytes(first.id)))
  if (ids.length > 0) await ask(context, 'fired', ids, true)
  return { outcomes, error: outcomes.flat().find(({ error }) => error !== undefined)?.error }
}

/** What a sweep tells of schedules, and what kept it from pushing the jobs of firings that a process has left. */
export interface SweptSchedules {
  now: number
  due: ScheduleRecord[]
  /** When the next one is due of the others. */
  nextAt: number | null
  error?: MillpondError | undefined
}

export async function sweepSchedules(context: StoreContext): Promise<SweptSchedules> {
  const [now, since, next, count, ...items] = await ask(context, 'due-schedules', [context.now() ?? '', MOST_DUE])
  const at = numberIn(now)
  const end = 2 * numberIn(count)
  const left = chunks(items.slice(end), 2).map(([, value]) => firingIn(bytesIn(value)))
  const { error } = await finish(context, left, { now: at, since: numberIn(since) })
  return { now: at, due: recordsIn(items.slice(0, end), at), nextAt: timeOrNull(next), error }
}

const recordsIn = (items: readonly unknown[], now: number): ScheduleRecord[] =>
  chunks(items, 2).map(([name, value]) => scheduleIn(textIn(name), bytesIn(value), now))

/** Per firing, whether its jobs have room, all of them and those of the firings before. */
async function withRoom(context: StoreContext, firings: readonly Firing[]): Promise<boolean[]> {
  const queues = new Set(firings.flatMap(({ jobs }) => jobs.map(({ queue }) => queue)))
  const partitions = new Map<string, readonly Partition[]>()
  const room = new Map<Partition, number>()
  const look = async (partition: Partition): Promise<void> => {
    const [free] = await callScript(context, 'room', partition)
    room.set(partition, timeOrNull(free) ?? Number.POSITIVE_INFINITY)
  }
  await Promise.all(
    [...queues].map(async (queue) => {
      const found = await context.queues.look(queue)
      partitions.set(queue, found)
      await Promise.all(found.map(look))
    }),
  )
  return firings.map(({ jobs }) => {
    const homes = jobs.flatMap((job) => homeOf(partitions.get(job.queue) ?? [], job) ?? [])
    const wanted = [...Map.groupBy(homes, (home) => home)].map(([home, { length }]) => ({ home, length }))
    if (wanted.some(({ home, length }) => (room.get(home) ?? 0) < length)) return false
    for (const { home, length } of wanted) room.set(home, (room.get(home) ?? 0) - length)
    return true
  })
}

/** Calls a script on the keys of the whole store. @param safe replicas are to have what was written */
function ask(
  { calls, safeCalls, queues }: StoreContext,
  script: string,
  args: readonly (string | number | Buffer)[],
  safe = false,
): Promise<readonly unknown[]> {
  calls.assertOpen()
  return (safe ? safeCalls : calls).script(script, queues.registryOf(script), args)
}
