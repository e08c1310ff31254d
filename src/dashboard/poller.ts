/**
 * Asks a store how its queues are, for all pages that are open. One for each pond of the process.
 *
 *   idle ── a page follows ──► polling ── the last page leaves ──► idle
 *
 * What was seen is kept while idle, so that a page that is opened again begins with it.
 */

import { isShown } from '../pond/actions.ts'
import { internalsOf } from '../pond/internals.ts'
import type { Millpond } from '../pond/millpond.ts'
import { type QueuePlan, queuePlan } from '../pond/plan.ts'
import { queueReport } from '../pond/stats.ts'
import { isSilent, silentText, slotsOf } from '../pond/worker-info.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import { lanesOf } from '../values/figures/worker-text.ts'
import type { QueueStats, WorkerRecord } from '../values/operations/requests.ts'
import { ALERTS_QUEUE, firingAlerts } from './alerts.ts'
import { attentionOf } from './attention.ts'
import { History } from './history.ts'
import type { Attention, Point, QueueView, StoreView } from './views.ts'

/** Milliseconds between two looks, from the end of the first; and the most, where looks take long. */
const PACE = 2000
const SLOWEST = 60_000
/** A pause is so many times longer than the look before, so that an open page takes less than 2 % of a core of the store's time. */
const PAUSE = 60
/** How many minutes the percentiles look back. */
const MINUTES = 5
/** Queues that are shown. */
const MAX_QUEUES = 1000

/** A queue without what only its caller knows. */
export type Seen = Omit<QueueView, 'may'>
export type SeenStore = Omit<StoreView, 'queues' | 'name'> & { queues: Seen[]; points: Map<string, Point> }

type Looked = Omit<SeenStore, 'pace'>

const pollers = new WeakMap<Millpond, Poller>()

export function pollerOf(pond: Millpond): Poller {
  const known = pollers.get(pond) ?? new Poller(pond)
  pollers.set(pond, known)
  return known
}

export class Poller {
  readonly #pond: Millpond
  readonly #history = new History()
  readonly #followers = new Set<() => void>()
  #latest: SeenStore | undefined
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  /** Milliseconds of the last look. */
  #took = 0

  constructor(pond: Millpond) {
    this.#pond = pond
  }

  /** undefined before the first look. */
  get latest(): SeenStore | undefined {
    return this.#latest
  }

  get history(): History {
    return this.#history
  }

  /** How many follow. */
  get followers(): number {
    return this.#followers.size
  }

  /** @param seen called after each look; it must not throw @returns ends it */
  follow(seen: () => void): () => void {
    // One function may follow twice.
    const own = () => seen()
    this.#followers.add(own)
    if (this.#latest !== undefined) own()
    if (this.#timer === undefined) void this.#look()
    return () => {
      this.#followers.delete(own)
      if (this.#followers.size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
      // What a later page begins with is asked for anew.
      this.#latest = undefined
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const began = performance.now()
    const looked = await this.#seen().catch((error: unknown) => this.#troubled(error))
    this.#isLooking = false
    const took = performance.now() - began
    // A call without an answer costs the store nothing, however long it took: it is asked again soon.
    const isAway = looked.trouble !== undefined
    // The shorter of two: a single long one may be this process's own fault.
    const paused = isAway ? 0 : Math.round(Math.min(took, this.#took) * PAUSE)
    const pace = Math.min(SLOWEST, Math.max(PACE, paused))
    this.#took = isAway ? 0 : took
    this.#latest = { ...looked, pace }
    for (const follower of [...this.#followers]) follower()
    if (this.#followers.size === 0) this.#latest = undefined
    else this.#timer = setTimeout(() => void this.#look(), pace).unref()
  }

  async #seen(): Promise<Looked> {
    const { store } = internalsOf(this.#pond)
    const { operations, capabilities } = store
    this.#pond.stopping.throwIfAborted()
    const [told, workers] = await Promise.all([
      operations.stats({ minutes: capabilities.histograms ? MINUTES : 0 }),
      capabilities.workers ? operations.workers({}) : [],
    ])
    // Of the log of actions there is a page.
    const all = told.filter(isShown)
    const now = Date.now()
    const byQueue = Map.groupBy(workers, ({ queue }) => queue)
    const queues: Seen[] = []
    const isWatched = all.some(({ queue }) => queue === ALERTS_QUEUE)
    const attention: Attention[] = isWatched ? await firingAlerts(store) : []
    const points = new Map<string, Point>()
    for (const stats of all.slice(0, MAX_QUEUES)) {
      const view = this.#view(stats, byQueue.get(stats.queue) ?? [], now)
      queues.push(view)
      attention.push(...attentionOf(stats, { ...view, may: NOTHING }, this.#history.recent(stats.queue)))
      points.set(stats.queue, this.#history.latest(stats.queue))
    }
    this.#history.keepOnly(new Set(points.keys()))
    attention.sort((a, b) => Number(b.level === 'alarm') - Number(a.level === 'alarm'))
    return { kind: store.name, capabilities, queues, more: all.length > MAX_QUEUES, attention, points }
  }

  #view(stats: QueueStats, workers: readonly WorkerRecord[], now: number): Seen {
    const { counts, wait, paused, capacity, oldestWaiting, overrides } = queueReport(stats.queue, stats)
    this.#history.add(stats, now, wait.p95 ?? null)
    const { arrivals, completions, failures } = this.#history.rates(stats.queue)
    const plan = planOf(stats)
    const alive = workers.filter((one) => !isSilent(one))
    const { slots, taken: busy } = slotsOf(workers, counts.running)
    return {
      ...{ name: stats.queue, paused, capacity, counts, arrivals, completions, failures, oldest: oldestWaiting },
      wait: { p50: wait.p50 ?? null, p95: wait.p95 ?? null, p99: wait.p99 ?? null },
      ...{ lanes: lanesOf(alive), silent: silentText(workers) ?? null },
      ...{ workers: alive.length, slots, busy, needed: plan?.measured.work == null ? null : plan.workers },
      drain: drainOf(counts.waiting, arrivals, completions),
      overridden: Object.keys(overrides).length > 0,
    }
  }

  #troubled(error: unknown): Looked {
    const { name, capabilities } = this.#pond.store
    const trouble = isMillpondError(error) ? error.code : safeText(error).slice(0, 200)
    return { kind: name, capabilities, queues: [], more: false, attention: [], points: new Map(), trouble }
  }
}

const NOTHING = { operate: false, payloads: false }

function planOf(stats: QueueStats): QueuePlan | undefined {
  try {
    return queuePlan(stats, {}, MINUTES)
  } catch (error) {
    // More workers than `plan` counts.
    if (isMillpondError(error, 'InvalidOption')) return undefined
    throw error
  }
}

function drainOf(waiting: number, arrivals: number | null, completions: number | null): number | null {
  if (waiting === 0) return 0
  if (arrivals === null || completions === null || completions <= arrivals) return null
  return (waiting / (completions - arrivals)) * 1000
}
