/** Changes in bulk, as callers ask for them: which jobs, and how the run goes. */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { JOB_STATES, type JobState } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import { cursorFields } from '../values/operations/cursor.ts'
import type { BulkChange, JobFilter } from '../values/operations/requests.ts'
import { checkOptions, defined, isFunction, isInteger, isSignal, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds, shown } from '../values/time/duration.ts'
import { FILTER_RULES, type FilterOptions, filterOf } from './listing.ts'
import { timeOf } from './push/options.ts'

/** All that is given must hold. */
export interface RequeueFilter extends FilterOptions {
  /** `dead` unless given. */
  state?: 'dead' | 'cancelled' | undefined
}
/** All that is given must hold. */
export interface CancelFilter extends FilterOptions {
  /** Blocked, scheduled, waiting and running jobs unless given. */
  state?: 'blocked' | 'scheduled' | 'waiting' | 'running' | undefined
}
/** All that is given must hold. */
export interface RemoveFilter extends FilterOptions {
  state: JobState
}
/** All that is given must hold. */
export interface UpdateFilter extends FilterOptions {
  state: 'blocked' | 'scheduled' | 'waiting'
}

/** What `updateAll` sets; one of them at least. What is unset stays. */
export interface UpdateAllOptions {
  /** Whole number, 0 to 9, higher first. */
  priority?: number | undefined
  /** The jobs are due after this time from the start of the run, by the store's clock; 0 to 100 years. Not together with `runAt`. */
  delay?: Duration | undefined
  /** When the jobs are due: a Date, or milliseconds since 1970. A time in the past means now. Not together with `delay`. */
  runAt?: Date | number | undefined
}

export interface BulkProgress {
  /** How many jobs the run has looked at. */
  looked: number
  /** About how many there are to look at. */
  total: number
  /** How many of them pass the filter. */
  matched: number
  /** How many were changed. */
  changed: number
  /** Where the next step begins: the option `after` of a run that goes on there. undefined: the run is over. */
  next: string | undefined
}

export interface BulkOptions {
  /**
   * Changes nothing, and tells how many jobs would be changed, with a few of them. `true`: looks at 100,000 jobs at the most, and
   * estimates beyond. `exact`: looks at all. false unless given.
   */
  dryRun?: boolean | 'exact' | undefined
  /** Changes so many jobs at most, and tells where to go on; 1 to 2^53 − 1, no limit unless given. */
  limit?: number | undefined
  /** Goes on where an earlier run ended: its `next`, or `from` of a dry run. Give the same filter. */
  after?: string | undefined
  /** Ends the run after the present step. The report then tells where to go on. */
  signal?: AbortSignal | undefined
  /** Called after each step, of at most 1,000 changes. */
  onProgress?: ((progress: BulkProgress) => void) | undefined
}

export type DryRunOptions = BulkOptions & { dryRun: true | 'exact' }

const OPTION_RULES: Rules<BulkOptions> = {
  dryRun: (value) => typeof value === 'boolean' || value === 'exact' || "true, false or 'exact'",
  limit: isInteger(1, Number.MAX_SAFE_INTEGER),
  after: (value) => (typeof value === 'string' && readPosition(value) !== undefined) || 'the `next` of an earlier run',
  signal: isSignal,
  onProgress: isFunction,
}

const UPDATE_RULES: Rules<UpdateAllOptions> = {
  priority: isInteger(0, 9),
  delay: (value) => milliseconds(value, 'delay') >= 0,
  runAt: (value) => timeOf(value) !== undefined || 'a valid Date, or milliseconds since 1970',
}

/** Where a run stands: the time of its first step, and in which state, behind which job. */
export interface Position {
  until: number
  state: JobState
  /** A store's cursor; unset: at the first job. */
  after?: string
}

export const positionText = ({ until, state, after = state }: Position): string => `${until}~${after}`

/** undefined: of another form. */
export function readPosition(text: string): Position | undefined {
  const [, time, after = ''] = /^(\d{1,16})~([a-z][a-z0-9.-]{0,300})$/.exec(text) ?? []
  const state = JOB_STATES.find((one) => after === one || after.startsWith(`${one}.`))
  if (state === undefined) return undefined
  if (after === state) return { until: Number(time), state }
  return cursorFields(state, after) === undefined ? undefined : { until: Number(time), state, after }
}

/** What a run does, checked. */
export interface BulkPlan {
  queue: string
  change: BulkChange
  /** Milliseconds from the start of the run until the jobs of an update are due. */
  delay?: number
  /** In this order. */
  states: readonly JobState[]
  filter: JobFilter | undefined
  options: Omit<BulkOptions, 'after'> & { from: Position | undefined }
}

/** The states that each verb changes, in the order in which a job may go through them. */
export const BULK_STATES = {
  requeue: ['dead', 'cancelled'],
  cancel: ['blocked', 'scheduled', 'waiting', 'running'],
  remove: JOB_STATES,
  promote: ['scheduled'],
  update: ['blocked', 'scheduled', 'waiting'],
} as const satisfies Record<string, readonly JobState[]>
export type BulkVerb = keyof typeof BULK_STATES

/** Where no state is given; none: it must be. */
const UNLESS_GIVEN: Record<BulkVerb, readonly JobState[]> = {
  ...{ requeue: ['dead'], cancel: BULK_STATES.cancel, promote: BULK_STATES.promote, remove: [], update: [] },
}

export interface BulkRequestOf {
  queue: string
  verb: BulkVerb
  filter: (FilterOptions & { state?: JobState | undefined }) | undefined
  options: BulkOptions | undefined
  /** Of an update. */
  change?: UpdateAllOptions
}

/** @throws InvalidOption, InvalidName, NotSupported, and the reason of a signal that is aborted */
export function bulkPlan(store: Store, { queue, verb, filter: given, options, change }: BulkRequestOf): BulkPlan {
  const where = `${verb}All of ${queue}`
  const { state, ...rest } = checkOptions(given, { state: stateRule(verb), ...FILTER_RULES }, `the filter of ${where}`)
  const { after, ...checked } = checkOptions(options, OPTION_RULES, where)
  const all = UNLESS_GIVEN[verb].filter((one) => one !== 'blocked' || store.capabilities.graphs)
  const states = state === undefined ? all : [state]
  if (states.length === 0)
    throw new MillpondError('InvalidOption', `${where}: name the state, as in { state: 'waiting' }`)
  const from = after === undefined ? undefined : readPosition(after)
  if (from !== undefined && !states.includes(from.state)) {
    throw new MillpondError(
      'InvalidOption',
      `${where}: \`after\` is of a run over ${from.state} jobs; give the same filter`,
    )
  }
  checked.signal?.throwIfAborted()
  needs(store, 'lists', where)
  needs(store, verb === 'promote' ? 'update' : verb, where)
  const filter = filterOf(store, rest)
  return {
    ...{ queue, states, options: { ...checked, from } },
    ...changeOf(store, verb, change, where),
    filter: Object.keys(filter).length === 0 ? undefined : filter,
  }
}

const stateRule = (verb: BulkVerb) => (value: unknown) =>
  BULK_STATES[verb].some((state) => state === value) || `one of ${BULK_STATES[verb].join(', ')}`

function changeOf(
  store: Store,
  verb: BulkVerb,
  given: UpdateAllOptions | undefined,
  where: string,
): { change: BulkChange; delay?: number } {
  if (verb !== 'update' && Object.values(given ?? {}).some((value) => value !== undefined)) {
    throw new MillpondError('InvalidOption', `${where}: priority, delay and runAt are of updates alone`)
  }
  if (verb === 'promote') return { change: { kind: 'update', runAt: 0 } }
  if (verb !== 'update') return { change: { kind: verb } }
  const { priority, delay, runAt } = checkOptions(given, UPDATE_RULES, where)
  const invalid = (reason: string) => new MillpondError('InvalidOption', `${where}: ${reason}; got ${shown(given)}`)
  if (delay !== undefined && runAt !== undefined) throw invalid('give delay or runAt, not both')
  if (priority === undefined && delay === undefined && runAt === undefined)
    throw invalid('give priority, delay or runAt')
  if (priority !== undefined) needs(store, 'priorities', 'priority')
  if (delay !== undefined || runAt !== undefined) needs(store, 'delays', 'a due time')
  const change = { kind: 'update' as const, ...defined({ priority, runAt: timeOf(runAt) }) }
  return delay === undefined ? { change } : { change, delay: milliseconds(delay, 'delay') }
}
