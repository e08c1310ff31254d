/** How each queue was in the last minutes, for the lines and for rates. */
import type { QueueStats } from '../values/operations/requests.ts'
import type { Recent } from './attention.ts'
import type { Point } from './views.ts'

/** Points of a queue, one for each look. With many queues each has fewer, so that the first event of a page stays small. */
const MAX_POINTS = 300
const MAX_POINTS_IN_ALL = 30_000
/** Milliseconds over which rates are measured. */
const RATE_TIME = 30_000

interface Sample {
  at: number
  totals: QueueStats['totals']
}

interface Line {
  points: Point[]
  /** Beside each point. */
  samples: Sample[]
}

interface Rates {
  arrivals: number | null
  completions: number | null
  failures: number | null
}

const EMPTY: Point = [0, 0, null, null, null, null]

export class History {
  readonly #lines = new Map<string, Line>()

  add({ queue, counts, totals }: QueueStats, at: number, p95: number | null): void {
    const line = this.#lines.get(queue) ?? { points: [], samples: [] }
    this.#lines.set(queue, line)
    const last = line.samples.at(-1)
    // A queue that was removed and made again counts from the start.
    if (last !== undefined && last.totals.pushed > totals.pushed) line.samples.length = line.points.length = 0
    const before = line.samples.at(-1)
    const rate = (name: keyof QueueStats['totals']) =>
      before === undefined ? null : perSecond(before, { at, totals }, name)
    line.points.push([at, counts.waiting, rate('pushed'), rate('done'), rate('failed'), p95])
    line.samples.push({ at, totals })
    const most = Math.max(10, Math.min(MAX_POINTS, Math.floor(MAX_POINTS_IN_ALL / this.#lines.size)))
    const over = line.points.length - most
    if (over > 0) {
      line.points.splice(0, over)
      line.samples.splice(0, over)
    }
  }

  /** Forgets queues that are gone. */
  keepOnly(queues: ReadonlySet<string>): void {
    for (const queue of this.#lines.keys()) if (!queues.has(queue)) this.#lines.delete(queue)
  }

  points(queue: string): Point[] {
    return this.#lines.get(queue)?.points ?? []
  }

  latest(queue: string): Point {
    return this.#lines.get(queue)?.points.at(-1) ?? EMPTY
  }

  rates(queue: string): Rates {
    const samples = this.#lines.get(queue)?.samples ?? []
    const last = samples.at(-1)
    const first = last && samples.find(({ at }) => at >= last.at - RATE_TIME)
    if (last === undefined || first === undefined || first === last) {
      return { arrivals: null, completions: null, failures: null }
    }
    const rate = (name: keyof QueueStats['totals']) => perSecond(first, last, name)
    return { arrivals: rate('pushed'), completions: rate('done'), failures: rate('failed') }
  }

  recent(queue: string): Recent {
    const samples = this.#lines.get(queue)?.samples ?? []
    const [first, last] = [samples[0], samples.at(-1)]
    if (first === undefined || last === undefined) return { dead: 0, lost: 0 }
    return { dead: last.totals.dead - first.totals.dead, lost: last.totals.lost - first.totals.lost }
  }
}

function perSecond(from: Sample, to: Sample, name: keyof QueueStats['totals']): number {
  const ms = to.at - from.at
  return ms <= 0 ? 0 : Math.round(((to.totals[name] - from.totals[name]) * 100_000) / ms) / 100
}
