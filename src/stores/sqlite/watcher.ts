/**
 * Notices what other connections do to the file. SQLite tells nobody, but `pragma data_version` changes with every commit
 * of another connection and costs microseconds, so it is looked at every few milliseconds; only when it changed are the
 * queues' rows read and compared with what they were. Our own commits do not change it, and are added to what we know.
 */
import type { Bell } from '../../store.ts'
import type { Written } from './ledger.ts'
import type { Connection, Statements } from './statements.ts'
import { integer, integerOrNull, type Row, text } from './values.ts'

const EVERY = 10

interface Seen {
  capacity: number | null
  paused: boolean
  scheduled: number
  waiting: number
  ready_total: number
  finished_total: number
  cancelled_total: number
}

function seenIn(row: Row): Seen {
  return {
    capacity: integerOrNull(row.capacity),
    paused: integer(row.paused) !== 0,
    scheduled: integer(row.scheduled),
    waiting: integer(row.waiting),
    ready_total: integer(row.ready_total),
    finished_total: integer(row.finished_total),
    cancelled_total: integer(row.cancelled_total),
  }
}

const NOTHING: Seen = {
  capacity: null,
  paused: false,
  scheduled: 0,
  waiting: 0,
  ready_total: 0,
  finished_total: 0,
  cancelled_total: 0,
}

const hasRoom = ({ capacity, scheduled, waiting }: Seen): boolean => capacity === null || scheduled + waiting < capacity

/** What happened to a queue between two looks. */
function bellsBetween(queue: string, before: Seen, after: Seen): Bell[] {
  const bells: Bell[] = []
  const resumed = before.paused && !after.paused
  if (after.waiting > 0 && (after.ready_total !== before.ready_total || resumed)) bells.push({ kind: 'work', queue })
  if (after.finished_total !== before.finished_total) bells.push({ kind: 'finished', queue })
  if (after.cancelled_total !== before.cancelled_total) bells.push({ kind: 'cancelled', queue })
  const limited = before.capacity !== null || after.capacity !== null
  // Pushed and taken between two looks leaves no trace but in what ever became ready.
  const moved =
    before.capacity !== after.capacity ||
    before.ready_total !== after.ready_total ||
    before.waiting + before.scheduled !== after.waiting + after.scheduled
  // Also where it was not full before: pushes of this process may have met the limit since the last look.
  if (limited && moved && hasRoom(after)) bells.push({ kind: 'room', queue })
  return bells
}

export class Watcher {
  readonly #statements: Statements
  readonly #version: () => unknown
  readonly #ring: (bells: Bell[]) => void
  #seen = new Map<string, Seen>()
  #lastVersion: unknown
  #timer: NodeJS.Timeout | null = null

  constructor(connection: Connection, statements: Statements, ring: (bells: Bell[]) => void) {
    const version = connection.prepare('pragma data_version')
    version.setReturnArrays?.(false)
    this.#version = () => {
      const row = version.get()
      return typeof row === 'object' && row !== null && 'data_version' in row ? row.data_version : undefined
    }
    this.#statements = statements
    this.#ring = ring
  }

  get watching(): boolean {
    return this.#timer !== null
  }

  start(): void {
    if (this.#timer !== null) return
    // What is there now is told as well: it may have come before anyone listened.
    this.#poll()
    this.#timer = setInterval(() => this.#poll(), EVERY)
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  /** Our own commits are no news to us. */
  own(written: readonly Written[]): void {
    if (this.#timer === null) return
    for (const { queue, happened, scheduled, waiting } of written) {
      const seen = this.#seen.get(queue) ?? NOTHING
      this.#seen.set(queue, {
        ...seen,
        scheduled: seen.scheduled + scheduled,
        waiting: seen.waiting + waiting,
        ready_total: seen.ready_total + happened.ready,
        finished_total: seen.finished_total + happened.finished,
        cancelled_total: seen.cancelled_total + happened.cancelled,
      })
    }
  }

  #poll(): void {
    try {
      const version = this.#version()
      if (version === this.#lastVersion) return
      const bells = this.#look()
      this.#lastVersion = version
      if (bells.length > 0) this.#ring(bells)
    } catch {
      // A locked or failing file. A bell may be missed; the next operation brings the error to someone who can act on it.
    }
  }

  #look(): Bell[] {
    const bells: Bell[] = []
    const seen = new Map<string, Seen>()
    for (const row of this.#statements.get('counts/watch').all()) {
      const queue = text(row.name)
      const after = seenIn(row)
      seen.set(queue, after)
      bells.push(...bellsBetween(queue, this.#seen.get(queue) ?? NOTHING, after))
    }
    this.#seen = seen
    return bells
  }
}
