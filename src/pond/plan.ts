/** How many workers? From figures that are given, or measured by the store. */

import { MillpondError } from '../values/errors/errors.ts'
import { middleOf } from '../values/figures/histogram.ts'
import { type Demand, MAX_WORKERS, sizing } from '../values/figures/sizing.ts'
import type { QueueStats } from '../values/operations/requests.ts'
import { checkOptions, isDuration, isInteger, type Rules } from '../values/options/options.ts'
import { type RateOption, rateOf } from '../values/settings/rate.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'

export interface PlanTargets {
  /** The rate lasts so long, and no job comes after it. Unset: it goes on. */
  surge?: Duration | undefined
  /**
   * After a surge, no job waits any more within this time; as long as the surge unless set. Without a surge: the backlog is done within
   * this time; 1 minute unless set.
   */
  drainWithin?: Duration | undefined
  /** How long a job may wait on average, where the rate goes on; as long as it runs unless set. */
  wait?: Duration | undefined
  /** How far run times vary: standard deviation ÷ mean, 0 to 100. 1 unless set or measured: many short ones, a few long ones. */
  variation?: number | undefined
  /** Jobs that a process runs at once, for `processes`; 1 unless set. */
  concurrency?: number | undefined
}

export interface PlanOptions extends PlanTargets {
  /** Jobs that come: `'100/s'`, `'5/10s'`, or a number per second. */
  rate: RateOption | number
  /** How long a job runs, on average. */
  work: Duration
  /** Jobs that wait already; 0 unless set. */
  backlog?: number | undefined
}

export interface QueuePlanOptions extends PlanTargets {
  /** Instead of the rate that was measured. */
  rate?: RateOption | number | undefined
  /** Instead of the run time that was measured. */
  work?: Duration | undefined
  /** How far back the measurements go; whole minutes, 1 to 60, 5 unless set. */
  minutes?: number | undefined
}

/** What a figure of a plan comes from. */
export interface PlanFormula {
  figure: string
  formula: string
  source: string
}

/** Times are in milliseconds. */
export interface Plan {
  /** Jobs that must run at once: the sum of all processes' `concurrency`. */
  workers: number
  /** workers ÷ `concurrency`, rounded up. */
  processes: number
  /** Jobs that run at once on average. */
  load: number
  /** The share of time that a worker works while jobs come. Above 1 in a surge that the queue takes up. */
  utilization: number
  /** Jobs that wait: at the end of a surge; else more than that only 1 time in 1,000. A `capacity` should be no less. */
  queue: number
  /** Until no job waits: after the surge, or from now. */
  drain: number
  /** `longest`: of the last job of a surge; else of 99 jobs of 100. */
  wait: { mean: number; longest: number }
  /** None if there is nothing to do. */
  formulas: PlanFormula[]
}

/** What the store has measured. */
export interface Measured {
  /** Starts a second: what came, while the workers kept up. */
  rate: number
  /** Mean run time in milliseconds; null: no job has run. */
  work: number | null
  /** Of run times: standard deviation ÷ mean. */
  variation: number
  /** Jobs that wait now. */
  backlog: number
  minutes: number
}

export interface QueuePlan extends Plan {
  measured: Measured
}

const TARGET_RULES = {
  surge: isDuration(1),
  drainWithin: isDuration(0),
  wait: isDuration(1),
  variation: (value: unknown) => (typeof value === 'number' && value >= 0 && value <= 100) || 'a number from 0 to 100',
  concurrency: isInteger(1, MAX_WORKERS),
}
const WORK = isDuration(1)
const isRate = (value: unknown) => ratePerSecond(value, 'rate') >= 0
const PLAN_RULES: Rules<PlanOptions> = {
  ...TARGET_RULES,
  rate: isRate,
  work: WORK,
  backlog: isInteger(0, Number.MAX_SAFE_INTEGER),
}
const QUEUE_RULES: Rules<QueuePlanOptions> = { ...TARGET_RULES, rate: isRate, work: WORK, minutes: isInteger(1, 60) }

const DEFAULT_MINUTES = 5
const DEFAULT_DRAIN = 60_000

/** @throws InvalidOption: also where more than 1,000,000 workers were needed */
export function plan(options: PlanOptions): Plan {
  const given = checkOptions(options, PLAN_RULES, 'plan', ['rate', 'work'])
  const { backlog = 0 } = given
  return planned(ratePerSecond(given.rate, 'rate'), milliseconds(given.work, 'work'), backlog, given)
}

/** Only jobs that ended in the last minutes are measured. @throws InvalidOption */
export function checkQueuePlan(options: QueuePlanOptions): { options: QueuePlanOptions; minutes: number } {
  const given = checkOptions(options, QUEUE_RULES, 'plan')
  return { options: given, minutes: given.minutes ?? DEFAULT_MINUTES }
}

/** @param stats with histograms of these minutes; undefined: the store does not know the queue @throws InvalidOption */
export function queuePlan(stats: QueueStats | undefined, options: QueuePlanOptions, minutes: number): QueuePlan {
  const measured = measure(stats, minutes)
  const rate = options.rate === undefined ? measured.rate : ratePerSecond(options.rate, 'rate')
  const work = options.work === undefined ? measured.work : milliseconds(options.work, 'work')
  const { backlog, variation } = measured
  const targets = { ...options, variation: options.variation ?? variation }
  if (work !== null) return { ...planned(rate, work, backlog, targets), measured }
  // Nobody knows how long a job runs. One worker finds out.
  const workers = rate > 0 || backlog > 0 ? 1 : 0
  const none = { load: 0, utilization: 0, queue: backlog, drain: 0, wait: { mean: 0, longest: 0 }, formulas: [] }
  return { workers, processes: workers, ...none, measured }
}

function measure(stats: QueueStats | undefined, minutes: number): Measured {
  let [starts, count, sum, squares] = [0, 0, 0, 0]
  for (const { metric, buckets } of stats?.histograms ?? []) {
    for (const [bucket, times] of Object.entries(buckets)) {
      if (metric === 'wait') starts += times
      else {
        const ms = middleOf(Number(bucket))
        count += times
        sum += times * ms
        squares += times * ms * ms
      }
    }
  }
  const mean = count === 0 ? null : sum / count
  // A run of 0 ms is one that took less than a microsecond.
  const work = mean === null ? null : Math.max(mean, 0.001)
  const variation = work === null ? 1 : Math.sqrt(Math.max(0, squares / count - work ** 2)) / work
  return { rate: starts / (minutes * 60), work, variation, backlog: stats?.counts.waiting ?? 0, minutes }
}

function planned(rate: number, work: number, backlog: number, targets: PlanTargets): Plan {
  const { variation = 1, concurrency = 1 } = targets
  const surge = targets.surge === undefined ? null : milliseconds(targets.surge, 'surge')
  const drainWithin = milliseconds(targets.drainWithin ?? surge ?? DEFAULT_DRAIN, 'drainWithin', surge === null ? 1 : 0)
  const wait = targets.wait === undefined ? work : milliseconds(targets.wait, 'wait')
  const demand: Demand = {
    ...{ rate, variation, backlog, work: work / 1000, wait: wait / 1000 },
    ...{ drainWithin: drainWithin / 1000, surge: surge === null ? null : surge / 1000 },
  }
  const sized = sizing(demand)
  if (sized === undefined) {
    const message = `plan: more than ${MAX_WORKERS} workers were needed; make the work shorter, or let it take longer`
    throw new MillpondError('InvalidOption', message)
  }
  const inMs = { drain: sized.drain * 1000, wait: { mean: sized.wait.mean * 1000, longest: sized.wait.longest * 1000 } }
  const formulas = sized.workers === 0 ? [] : surge === null ? LASTING : SURGING
  return { ...sized, ...inMs, processes: Math.ceil(sized.workers / concurrency), formulas: [...formulas] }
}

/** Jobs a second. @throws InvalidOption */
function ratePerSecond(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  const { count, per } = rateOf(value as RateOption, name)
  return (count * 1000) / per
}

const LITTLE: PlanFormula = {
  figure: 'load',
  formula: 'a = rate × work',
  source: "Little's law: J. D. C. Little, Operations Research 9(3), 1961",
}
const LASTING: readonly PlanFormula[] = [
  LITTLE,
  {
    figure: 'workers',
    formula: 'least c > a, with c ≥ a + backlog × work ÷ drainWithin, and mean wait ≤ wait',
    source: 'A queue is stable while c > a; a backlog shrinks by (c − a) ÷ work a second',
  },
  {
    figure: 'wait',
    formula: [
      'mean = C × work ÷ (c − a) × (1 + variation²) ÷ 2',
      'C = B ÷ (1 − a ÷ c × (1 − B)), the Erlang C formula',
      'B(k) = a B(k−1) ÷ (k + a B(k−1))',
    ].join('; '),
    source:
      'A. K. Erlang, 1917; for run times that vary otherwise: A. O. Allen, Probability, Statistics and Queueing Theory, 2nd ed., 1990',
  },
  {
    figure: 'queue',
    formula: 'backlog + least n with C × (a ÷ c)^(n + 1) ≤ 0.001',
    source: 'L. Kleinrock, Queueing Systems 1, 1975: M/M/c',
  },
]
const SURGING: readonly PlanFormula[] = [
  LITTLE,
  {
    figure: 'workers',
    formula: '⌈(backlog + rate × surge) × work ÷ (surge + drainWithin)⌉',
    source:
      'All that comes is done by then. Waits by chance are small beside those of the surge, so it is looked at as a flow',
  },
  {
    figure: 'queue',
    formula: 'backlog + rate × surge − workers × surge ÷ work',
    source: 'What came, less what the workers did meanwhile: G. F. Newell, Applications of Queueing Theory, 1971',
  },
  { figure: 'drain, longest wait', formula: 'queue × work ÷ workers', source: 'the same' },
]
