/**
 * How many workers a queue needs, and how long jobs wait. `contract/vectors/sizing.json` pins the figures; docs/sizing.md
 * has the sources. A worker here runs one job at a time: a process counts as many as its `concurrency`.
 *
 *   a = λ S                              load: how many jobs run at once on average (Little's law)
 *   B(0) = 1, B(k) = a B(k−1) ÷ (k + a B(k−1))        Erlang B
 *   C = B(c) ÷ (1 − (a ÷ c) (1 − B(c)))               Erlang C: the share of jobs that wait
 *   W = C S ÷ (c − a) × (1 + v²) ÷ 2                  mean wait; v: coefficient of variation (Allen and Cunneen)
 *
 * A surge, and a backlog, are looked at as a flow: what comes in less what c workers do, c ÷ S a second.
 */

/** Times are in seconds. */
export interface Demand {
  /** Jobs that come a second. */
  rate: number
  /** Mean run time of a job; above 0. */
  work: number
  /** How far run times vary: their standard deviation ÷ their mean. 1: exponential; 0: all alike. */
  variation: number
  /** The rate lasts so long, then no job comes. null: it goes on. */
  surge: number | null
  /** Within what time after the surge no job is to wait any more; without a surge: within what time from now. */
  drainWithin: number
  /** Jobs that wait now. */
  backlog: number
  /** How long a job may wait on average, where the rate goes on. */
  wait: number
}

export interface Sizing {
  workers: number
  /** Jobs that run at once on average. */
  load: number
  /** The share of time that a worker works while jobs come; above 1 in a surge that a queue takes up. */
  utilization: number
  /** Jobs that wait: at the end of a surge; else more than that only 1 time in 1,000. */
  queue: number
  /** Seconds until none waits: after the surge, or from now. */
  drain: number
  /** Seconds. `longest`: of the last job of a surge; else of 99 jobs of 100. */
  wait: { mean: number; longest: number }
}

/** More than that is a wrong input. */
export const MAX_WORKERS = 1_000_000
const SHARE_ABOVE_LONGEST = 0.01
const SHARE_ABOVE_QUEUE = 0.001

/** @returns undefined: more than `MAX_WORKERS` */
export function sizing(demand: Demand): Sizing | undefined {
  const load = demand.rate * demand.work
  if (load >= MAX_WORKERS) return undefined
  const { surge } = demand
  return surge === null ? lasting(demand, load) : surging({ ...demand, surge }, load)
}

/** The rate goes on. */
function lasting(
  { work, variation, drainWithin, backlog, wait: most, rate }: Demand,
  load: number,
): Sizing | undefined {
  if (rate === 0 && backlog === 0) return { ...NOTHING, load }
  const spread = (1 + variation ** 2) / 2
  const least = Math.max(Math.floor(load) + 1, Math.ceil(load + (backlog * work) / drainWithin))
  let blocked = 1
  for (let workers = 1; workers <= MAX_WORKERS; workers++) {
    blocked = (load * blocked) / (workers + load * blocked)
    if (workers < least) continue
    const utilization = load / workers
    const waits = blocked / (1 - utilization * (1 - blocked))
    const scale = (work / (workers - load)) * spread
    if (waits * scale > most) continue
    return {
      ...{ workers, load, utilization },
      queue: backlog + longQueue(waits, utilization),
      drain: (backlog * work) / (workers - load),
      wait: { mean: waits * scale, longest: Math.max(0, scale * Math.log(waits / SHARE_ABOVE_LONGEST)) },
    }
  }
  return undefined
}

/** P(more than n jobs wait) = C × utilization ^ (n + 1). */
function longQueue(waits: number, utilization: number): number {
  if (waits <= SHARE_ABOVE_QUEUE) return 0
  return Math.max(0, Math.ceil(Math.log(SHARE_ABOVE_QUEUE / waits) / Math.log(utilization)) - 1)
}

/** The rate lasts for a while. All that comes is done in that while and the time to drain. */
function surging(
  { rate, work, surge, drainWithin, backlog }: Demand & { surge: number },
  load: number,
): Sizing | undefined {
  const jobs = backlog + rate * surge
  if (jobs === 0) return { ...NOTHING, load }
  const workers = Math.max(1, Math.ceil((jobs * work) / (surge + drainWithin)))
  if (workers > MAX_WORKERS) return undefined
  const queue = Math.max(0, jobs - (workers * surge) / work)
  const drain = (queue * work) / workers
  const first = (backlog * work) / workers
  return {
    ...{ workers, load, utilization: load / workers, queue: Math.ceil(Math.max(queue, backlog)), drain },
    wait: { mean: (first + drain) / 2, longest: Math.max(first, drain) },
  }
}

const NOTHING = { workers: 0, utilization: 0, queue: 0, drain: 0, wait: { mean: 0, longest: 0 } }
