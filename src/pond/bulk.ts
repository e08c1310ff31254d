/**
 * Changes all jobs of a queue that pass a filter, in steps. Each step is one call of the store, which looks at some thousand jobs and
 * changes 1,000 at the most.
 *
 * A run goes through a state once, in the order of its list, and takes only jobs that were in the state when it began. So a job that comes
 * back meanwhile, such as one that was requeued and died again, is not taken a second time.
 */
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../store.ts'
import { type JobInfo, jobInfo } from '../values/jobs/job.ts'
import type { JobState } from '../values/jobs/records.ts'
import type { BulkChange, BulkStep } from '../values/operations/requests.ts'
import { defined } from '../values/options/options.ts'
import { type BulkPlan, type BulkProgress, type Position, positionText } from './bulk-options.ts'

const MAX_CHANGES_PER_STEP = 1000
/** Jobs that a dry run looks at before it estimates. */
const MAX_LOOKS_OF_PREVIEW = 100_000

/** `matched` − `changed` stay as they are: a live job has their key, or they are changing at this moment. */
export type BulkReport = Omit<BulkProgress, 'total'>

export interface BulkPreview<Data = unknown, Result = unknown> {
  /** How many jobs would be changed. */
  count: number
  /** The count is an estimate, since there are many jobs. */
  isEstimate: boolean
  /** The first ones, at most ten. */
  sample: JobInfo<Data, Result>[]
  /** The option `after` of a run that takes only jobs that were there at the time of the preview. */
  from: string
}

/** @throws as the store's operations do; what was changed by then stays changed, and `onProgress` was told where to go on */
export async function runBulk(store: Store, plan: BulkPlan): Promise<BulkReport> {
  const { signal, onProgress, limit = Number.POSITIVE_INFINITY } = plan.options
  const total = onProgress === undefined ? 0 : sum(await counts(store, plan))
  const report: BulkReport = { looked: 0, matched: 0, changed: 0, next: undefined }
  const change = await datedChange(store, plan)
  let at: Position | undefined = change.from
  for (;;) {
    const most = Math.min(MAX_CHANGES_PER_STEP, limit - report.matched)
    const { step, next } = await stepFrom(store, plan, change.change, most, at)
    add(report, step)
    at = next
    report.next = next && positionText(next)
    onProgress?.({ ...report, total })
    if (at === undefined || report.matched >= limit || signal?.aborted) return report
    // A store in this process answers at once: others have their turn.
    await setImmediate()
  }
}

/** @throws as the store's operations do */
export async function previewBulk(store: Store, plan: BulkPlan): Promise<BulkPreview> {
  const { signal, dryRun, onProgress } = plan.options
  const all = await counts(store, plan)
  const { change, from } = await datedChange(store, plan)
  const seen: BulkReport = { looked: 0, matched: 0, changed: 0, next: undefined }
  const ids: string[] = []
  let at: Position | undefined = from
  let until = from?.until
  const isOver = () =>
    at === undefined || (dryRun !== 'exact' && seen.looked >= MAX_LOOKS_OF_PREVIEW) || signal?.aborted
  do {
    const { step, next } = await stepFrom(store, plan, change, 0, at)
    add(seen, step)
    ids.push(...step.sample)
    until ??= step.now
    at = next
    onProgress?.({ ...seen, total: sum(all), next: next && positionText(next) })
    await setImmediate()
  } while (!isOver())
  const found = await store.operations.find({ ids: ids.slice(0, 10) })
  const sample = found.flatMap((record) => (record === null ? [] : [jobInfo(record)]))
  const isEstimate = at !== undefined
  const share = seen.looked === 0 ? 0 : seen.matched / seen.looked
  const count = isEstimate ? Math.max(seen.matched, Math.round(share * sum(all))) : seen.matched
  return { count, isEstimate, sample, from: positionText(from ?? { until: until ?? 0, state: stateOf(plan) }) }
}

const sum = (all: readonly number[]): number => all.reduce((one, other) => one + other, 0)
const stateOf = ({ states: [state = 'dead'] }: BulkPlan): JobState => state

function add(report: BulkReport, { looked, matched, changed }: BulkStep): void {
  report.looked += looked
  report.matched += matched
  report.changed += changed
}

/** How many jobs each of the states has. */
async function counts(store: Store, { queue, states }: BulkPlan): Promise<number[]> {
  const [stats] = await store.operations.stats({ queue, minutes: 0 })
  return states.map((state) => stats?.counts[state] ?? 0)
}

/** All steps of an update set the same time, by the store's clock: a time that moved on would change jobs again and again. */
async function datedChange(store: Store, plan: BulkPlan): Promise<{ change: BulkChange; from: Position | undefined }> {
  const { change, delay, options } = plan
  if (delay === undefined || change.kind !== 'update') return { change, from: options.from }
  const from = options.from ?? {
    until: (await stepFrom(store, plan, change, 0, undefined)).step.now,
    state: stateOf(plan),
  }
  return { change: { ...change, runAt: from.until + delay }, from }
}

/** @param most jobs that it changes; 0: it only counts */
async function stepFrom(
  store: Store,
  { queue, states, filter }: BulkPlan,
  change: BulkChange,
  most: number,
  at: Position | undefined,
): Promise<{ step: BulkStep; next: Position | undefined }> {
  const { state = states[0] ?? 'dead', after, until } = at ?? {}
  const step = await store.operations.bulk({
    ...{ queue, state, change, limit: most },
    ...defined({ filter, after, until }),
  })
  const since = until ?? step.now
  if (step.next !== null) return { step, next: { until: since, state, after: step.next } }
  const following = states[states.indexOf(state) + 1]
  return { step, next: following && { until: since, state: following } }
}
