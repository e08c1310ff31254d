import type { Input } from '../../../store.ts'
import type {
  Declaration,
  DeclareOutcome,
  FireOutcome,
  Firing,
  ScheduleRecord,
} from '../../../values/schedules/records.ts'
import { DECLARE_OUTCOMES, MISSED } from '../../../values/schedules/records.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import { flag, integer, integerOrNull, type Row, text, textOrNull } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'
import { encodedFrom } from '../wire.ts'
import { push } from './push.ts'

const { due: MOST_DUE, declared: STILL_DECLARED } = DEFAULTS.schedule

export function declare(context: StoreContext, { schedules: declared }: Input<'declare'>): DeclareOutcome[] {
  return declared.map((each) => declareOne(context, each))
}

function declareOne({ statements, now }: StoreContext, declared: Declaration): DeclareOutcome {
  const { name, version, when, tz, missed, jitter, from, until, paused, job, again } = declared
  const row = statements.get('schedules/outcome', { name, version, now })
  const told = DECLARE_OUTCOMES.find((known) => known === row?.outcome)
  const outcome = told ?? (again ? 'unknown' : 'created')
  if (outcome === 'same') statements.run('schedules/seen', { name, now })
  if (outcome !== 'created' && outcome !== 'changed') return outcome
  const { data, ...rest } = job
  statements.run('schedules/store', {
    ...{ name, version, when, tz, missed, jitter, from, until, paused: paused ? 1 : 0, now },
    ...{ ...rest, encoding: data.encoding, data: data.body },
  })
  return outcome
}

export function schedules(
  { statements, now }: StoreContext,
  { limit, after = null, name = null }: { limit: number; after?: string | null; name?: string | null },
): ScheduleRecord[] {
  return statements.all('schedules/list', { limit, after, name }).map((row) => recordFrom(row, now))
}

export function pauseSchedule({ statements, now }: StoreContext, { name, paused }: Input<'pauseSchedule'>): boolean {
  return statements.run('schedules/pause', { name, paused: paused ? 1 : 0, now }) === 1
}

export function removeSchedule({ statements }: StoreContext, { name }: Input<'removeSchedule'>): boolean {
  return statements.run('schedules/remove', { name }) === 1
}

export function fire(context: StoreContext, { firings }: Input<'fire'>): FireOutcome[] {
  return firings.map((firing) => fireOne(context, firing))
}

function fireOne(context: StoreContext, { name, version, expected, next, jobs }: Firing): FireOutcome {
  const { statements, queues, now } = context
  if (statements.get('schedules/is_at', { name, version, expected }) === undefined) return { status: 'stale' }
  const [first] = jobs
  if (first !== undefined && queues.findOrCreate(first.queue).room < jobs.length) return { status: 'full' }
  statements.run('schedules/fired', { name, next, fired_at: jobs.length > 0 ? now : null })
  return { status: 'fired', jobs: push(context, { jobs }) ?? [] }
}

/** What a sweep tells: the schedules that are due, and when the next one of the others is. */
export function dueSchedules({ statements, now }: StoreContext): { due: ScheduleRecord[]; nextAt: number | null } {
  const due = statements.all('schedules/due', { now, limit: MOST_DUE }).map((row) => recordFrom(row, now))
  return { due, nextAt: integerOrNull(statements.get('schedules/next', { now })?.next_at) }
}

function recordFrom(row: Row, now: number): ScheduleRecord {
  return {
    ...{ name: text(row.name), version: text(row.version), when: text(row.when), tz: text(row.tz) },
    missed: MISSED.find((known) => known === row.missed) ?? 'once',
    ...{ jitter: integer(row.jitter), from: integerOrNull(row.from), until: integerOrNull(row.until) },
    ...{ paused: flag(row.paused), planned: flag(row.planned), nextAt: integerOrNull(row.next_at) },
    ...{
      changedAt: integer(row.changed_at),
      declared: integer(row.seen_at) + STILL_DECLARED > now,
      lastAt: integerOrNull(row.last_at),
    },
    job: {
      ...{ queue: text(row.queue), priority: integer(row.priority), key: textOrNull(row.key) },
      ...{ group: textOrNull(row.group), cost: integer(row.cost), attempts: integerOrNull(row.attempts) },
      ...{ timeout: integerOrNull(row.timeout), data: encodedFrom(row.encoding, row.data) },
    },
  }
}
