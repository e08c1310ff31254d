/**
 * Schedules go before the jobs, one at a time. Each step can be repeated. A killed move leaves a schedule at the source, the target or
 * both, and only one of them fires:
 *
 *   at the source ──taken: it has no next time there──► declared at the target ──given the next time──► removed at the source
 *
 * A time has the same job id at both ends. What the target's own code has declared stays.
 */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { ScheduleRecord } from '../values/schedules/records.ts'
import { timesOf } from '../values/schedules/times.ts'

const PAGE = 100

/** Those of the source whose jobs go to these queues; all unless given. */
export async function schedulesOf(store: Store, queues: readonly string[] | undefined): Promise<ScheduleRecord[]> {
  if (!store.capabilities.schedules) return []
  const found: ScheduleRecord[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.operations.schedules({ limit: PAGE, ...(after !== undefined && { after }) })
    found.push(...page)
    after = page.at(-1)?.name
    if (page.length < PAGE) return found.filter(({ job }) => queues === undefined || queues.includes(job.queue))
  }
}

/** @throws NotSupported: the target cannot keep them */
export function checkSchedules({ name, capabilities }: Store, schedules: readonly ScheduleRecord[]): void {
  if (capabilities.schedules || schedules.length === 0) return
  throw new MillpondError(
    'NotSupported',
    `the ${name} store keeps no schedules, and the source has ${schedules.length}. Move with settings: false ` +
      '(--no-settings) to leave them behind',
  )
}

/** Both stores repeat calls. A step that was done already changes nothing. @param stop ends it with the reason of the signal */
export async function moveSchedules(
  from: Store,
  to: Store,
  schedules: readonly ScheduleRecord[],
  stop: AbortSignal,
): Promise<void> {
  for (const { name } of schedules) {
    stop.throwIfAborted()
    await moveSchedule(from, to, name)
  }
}

async function moveSchedule(from: Store, to: Store, name: string): Promise<void> {
  const taken = await take(from, name)
  if (taken === undefined) return
  const { record, next } = taken
  const { planned: _, nextAt: __, changedAt: ___, declared: ____, lastAt: _____, ...declared } = record
  const [there] = await to.operations.schedules({ limit: 1, name })
  if (there === undefined) await to.operations.declare({ schedules: [{ ...declared, again: false }] })
  if (next !== undefined) await plan(to, record, next)
  await from.operations.removeSchedule({ name })
}

/**
 * Takes the next firing from the source, so that no worker there can have it.
 * @returns `next`: when it fires next; undefined: nobody can tell
 */
async function take(
  from: Store,
  name: string,
): Promise<{ record: ScheduleRecord; next: number | null | undefined } | undefined> {
  for (;;) {
    const [record] = await from.operations.schedules({ limit: 1, name })
    if (record === undefined) return undefined
    const { version, nextAt } = record
    if (nextAt === null || record.paused) return { record, next: nextOf(record) }
    const next = nextOf(record)
    const firing = { name, version, expected: nextAt, next: null, jobs: [] }
    const [outcome] = await from.operations.fire({ firings: [firing] })
    // Else it has fired, or was changed, at this very moment.
    if (outcome?.status === 'fired') return { record, next }
  }
}

function nextOf(record: ScheduleRecord): number | null | undefined {
  const { planned, nextAt, lastAt, changedAt } = record
  if (planned && nextAt !== null) return nextAt
  try {
    // Of one without a next time, a move that was killed has taken it.
    return timesOf(record).after(nextAt ?? lastAt ?? changedAt)
  } catch {
    // A line of another version or language.
    return undefined
  }
}

/** The target may have planned it by now, from the time at which it was declared there; it has not fired yet then. */
async function plan(to: Store, { name, version }: ScheduleRecord, next: number | null): Promise<void> {
  for (;;) {
    const [there] = await to.operations.schedules({ limit: 1, name })
    if (there === undefined || there.version !== version || there.paused) return
    if (there.lastAt !== null || there.nextAt === null || (there.planned && there.nextAt === next)) return
    const firing = { name, version, expected: there.nextAt, next, jobs: [] }
    const [outcome] = await to.operations.fire({ firings: [firing] })
    if (outcome?.status === 'fired') return
  }
}
