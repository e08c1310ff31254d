/** Schedules: contract/redis/scheduled.lua. */
import type { Input } from '../../../store.ts'
import type { DeclareOutcome, FireOutcome, ScheduleRecord } from '../../../values/schedules/records.ts'
import { DECLARE_OUTCOMES } from '../../../values/schedules/records.ts'
import { chunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { scheduledBytes, scheduleIn } from '../schedule-wire.ts'
import { bytesIn, numberIn, textIn, unexpected } from '../wire.ts'
import { outcomeOf, pushArgs, pushed } from './push.ts'

export async function declare(context: StoreContext, { schedules }: Input<'declare'>): Promise<DeclareOutcome[]> {
  if (schedules.length === 0) return []
  const lists = schedules.map(({ name, version, when, tz, missed, jitter, from, until, paused, again }) => [
    ...[name, version, when, tz, missed, jitter, from ?? false, until ?? false, paused, again],
  ])
  const items = schedules.map(({ job }) => scheduledBytes(job))
  const outcomes = await callScript(context, 'declare', { head: [lists], items, safe: true })
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
  const found: ScheduleRecord[] = []
  for (let last = after ?? null; ; ) {
    const head = [limit - found.length, last, name ?? null]
    const [now, more, ...items] = await callScript(context, 'schedules', { head })
    found.push(...schedulesIn(items, numberIn(now)))
    if (more !== 1 || found.length >= limit) return found
    last = found.at(-1)?.name ?? null
  }
}

export async function pauseSchedule(context: StoreContext, { name, paused }: Input<'pauseSchedule'>): Promise<boolean> {
  const [known] = await callScript(context, 'pause-schedule', { head: [name, paused], safe: true })
  return known === 1
}

export async function removeSchedule(context: StoreContext, { name }: Input<'removeSchedule'>): Promise<boolean> {
  const [known] = await callScript(context, 'remove-schedule', { head: [name], safe: true })
  return known === 1
}

const FIRED = 1
const FULL = 2

export async function fire(context: StoreContext, { firings }: Input<'fire'>): Promise<FireOutcome[]> {
  if (firings.length === 0) return []
  const all = firings.flatMap(({ jobs }) => jobs)
  const lists = firings.map(({ name, version, expected, next, jobs }) => [
    ...[name, version, expected, next ?? false, jobs.length],
  ])
  const { head, items } = pushArgs(all)
  const [made, ...answers] = await callScript(context, 'fire', { head: [...head, lists], items, safe: true })
  pushed(context, all, made)
  const fates = answers.splice(0, firings.length)
  return firings.map(({ jobs }, at): FireOutcome => {
    const own = answers.splice(0, jobs.length)
    if (fates[at] !== FIRED) return { status: fates[at] === FULL ? 'full' : 'stale' }
    return { status: 'fired', jobs: jobs.map(({ id }, i) => outcomeOf(own[i], id)) }
  })
}

export const schedulesIn = (items: readonly unknown[], now: number): ScheduleRecord[] =>
  chunks(items, 2).map(([name, value]) => scheduleIn(textIn(name), bytesIn(value), now))
