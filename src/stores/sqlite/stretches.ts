/**
 * Keeps the stretches of places in which jobs wait, as contract/sqlite/waiting.sql has them. A batch of pushes costs one row here, and a claim
 * shortens one, where an index of the waiting jobs would be written twice for every job.
 */
import type { Statements } from './statements.ts'
import { integer, type Row } from './values.ts'

/** The last job of a claim, as `look` tells it in one number: (9 - priority) * 2^48 + place. */
const PLACES = 2 ** 48
/**
 * A stretch goes on over so many places: to step over jobs of another queue or priority takes a claim less than another stretch, where
 * pushes to several queues take turns.
 */
const MOST_APART = 32

export interface Place {
  priority: number
  seq: number
}

export function placeOf(packed: number): Place {
  return { priority: 9 - Math.floor(packed / PLACES), seq: packed % PLACES }
}

export class Stretches {
  readonly #statements: Statements

  constructor(statements: Statements) {
    this.#statements = statements
  }

  /** Jobs just pushed, whose places are greater than all others of their queue and priority. */
  pushed(queue: string, priority: number, first: number, last: number): void {
    const newest = this.#statements.get('waiting/newest')
    let before = newest.get({ queue, priority })
    if (before !== undefined && integer(before.first) >= first) {
      this.#statements.get('waiting/forget').run({ queue, priority, first })
      before = newest.get({ queue, priority })
    }
    this.#add(queue, priority, first, last, before)
  }

  /** A job that waits again, or for the first time after it was scheduled. */
  returned(queue: string, { priority, seq }: Place): void {
    const before = this.#statements.get('waiting/before').get({ queue, priority, seq })
    if (before !== undefined && integer(before.last) >= seq) return
    this.#add(queue, priority, seq, seq, before)
  }

  #add(queue: string, priority: number, first: number, last: number, before: Row | undefined): void {
    if (before !== undefined && integer(before.last) >= first - MOST_APART) {
      this.#statements.get('waiting/grow').run({ queue, priority, first: integer(before.first), last })
    } else this.#statements.get('waiting/add').run({ queue, priority, first, last })
  }

  /**
   * It was waiting and is cancelled. Most are cancelled in their order, and then nobody has to step over them; those in the midst of a stretch are
   * left for the next claim, which steps over each once.
   */
  left(queue: string, { priority, seq }: Place): void {
    const stretch = this.#statements.get('waiting/before').get({ queue, priority, seq })
    if (stretch === undefined || integer(stretch.first) !== seq) return
    if (integer(stretch.last) > seq) this.#statements.get('waiting/shrink').run({ queue, priority, seq })
    else this.#statements.get('waiting/drop').run({ queue, priority, first: seq })
  }

  /** A claim has taken all up to this one. */
  taken(queue: string, { priority, seq }: Place): void {
    this.#statements.get('waiting/shrink').run({ queue, priority, seq })
    this.#statements.get('waiting/remove').run({ queue, priority, seq })
    this.#statements.get('waiting/remove_higher').run({ queue, priority })
  }

  /** A claim has taken all there were. */
  clear(queue: string): void {
    this.#statements.get('waiting/clear').run({ queue })
  }
}

interface Run {
  queue: string
  priority: number
  first: number
  last: number
}

/** Gathers the places of jobs as they are pushed, so that those of one call take few stretches. */
export class Runs {
  readonly #stretches: Stretches
  #open: Run[] = []

  constructor(stretches: Stretches) {
    this.#stretches = stretches
  }

  add(queue: string, { priority, seq }: Place): void {
    const run = this.#open.find((other) => other.priority === priority && other.queue === queue)
    if (run === undefined) {
      if (this.#open.length === MOST_APART) this.#write(this.#open.shift())
      this.#open.push({ queue, priority, first: seq, last: seq })
      return
    }
    if (seq - run.last > MOST_APART) {
      this.#write(run)
      run.first = seq
    }
    run.last = seq
  }

  /** Writes what is gathered. */
  end(): void {
    for (const run of this.#open) this.#write(run)
    this.#open = []
  }

  #write(run: Run | undefined): void {
    if (run !== undefined) this.#stretches.pushed(run.queue, run.priority, run.first, run.last)
  }
}
