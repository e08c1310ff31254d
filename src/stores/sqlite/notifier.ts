/**
 * Bells, for those who listen on this connection. Our own commits ring for what they changed. SQLite tells nobody of the
 * commits of other connections, but `pragma data_version` changes with each and costs microseconds, so it is read every few
 * milliseconds; only when it changed are the queues' rows read and compared with what they were.
 */
import type { Bell } from '../../store.ts'
import type { Connection, Statements } from './connection/statements.ts'
import { integer, integerOrNull, type Row, text } from './connection/values.ts'
import type { QueueChanges } from './queues.ts'

const POLL_INTERVAL = 10

/** What is known of a queue. Our own commits do not change `data_version`, and are added to it. */
interface Seen {
  capacity: number | null
  paused: boolean
  /** Scheduled and waiting jobs. */
  held: number
  waiting: number
  ready: number
  finished: number
  cancelled: number
}

const NOTHING: Seen = { capacity: null, paused: false, held: 0, waiting: 0, ready: 0, finished: 0, cancelled: 0 }

const seenIn = (row: Row): Seen => ({
  capacity: integerOrNull(row.capacity),
  paused: integer(row.paused) !== 0,
  held: integer(row.scheduled) + integer(row.waiting),
  waiting: integer(row.waiting),
  ready: integer(row.ready_total),
  finished: integer(row.finished_total),
  cancelled: integer(row.cancelled_total),
})

/** What another connection did to a queue between two looks. */
function bellsBetween(queue: string, before: Seen, after: Seen): Bell[] {
  const bells: Bell[] = []
  const resumed = before.paused && !after.paused
  if (after.waiting > 0 && (after.ready !== before.ready || resumed)) bells.push({ kind: 'work', queue })
  if (after.finished !== before.finished) bells.push({ kind: 'finished', queue })
  if (after.cancelled !== before.cancelled) bells.push({ kind: 'cancelled', queue })
  const isLimited = before.capacity !== null || after.capacity !== null
  const hasRoom = after.capacity === null || after.held < after.capacity
  // A job that was pushed and claimed between two looks leaves no trace but in `ready`.
  const hasMoved = before.capacity !== after.capacity || before.ready !== after.ready || before.held !== after.held
  // Also where the queue was not full before: pushes of this process may have met the limit since the last look.
  if (isLimited && hasMoved && hasRoom) bells.push({ kind: 'room', queue })
  return bells
}

function bellsOf({ name: queue, bells: kinds, finished, cancelled }: QueueChanges): Bell[] {
  const bells: Bell[] = [...kinds].map((kind) => ({ kind, queue }))
  if (finished.length > 0) bells.push({ kind: 'finished', queue, ids: finished })
  if (cancelled.length > 0) bells.push({ kind: 'cancelled', queue, ids: cancelled })
  return bells
}

export class Notifier {
  readonly #statements: Statements
  readonly #version: () => unknown
  readonly #ring: (bells: Bell[]) => void
  #seen = new Map<string, Seen>()
  #lastVersion: unknown
  #timer: NodeJS.Timeout | null = null

  constructor(connection: Connection, statements: Statements, ring: (bells: Bell[]) => void) {
    const version = connection.prepare('pragma data_version')
    this.#version = () => Object.values(version.get() ?? {})[0]
    this.#statements = statements
    this.#ring = ring
  }

  listen(wanted: boolean): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    if (!wanted) return
    // What is there now is told as well: it may have come before anyone listened.
    this.#poll()
    this.#timer = setInterval(() => this.#poll(), POLL_INTERVAL)
  }

  /** After a commit of ours. @returns the bells that it rings */
  committed(queues: readonly QueueChanges[]): Bell[] {
    if (this.#timer === null) return []
    for (const { name, counts, totals } of queues) {
      const seen = this.#seen.get(name) ?? NOTHING
      const waiting = counts.get('waiting') ?? 0
      this.#seen.set(name, {
        ...seen,
        held: seen.held + waiting + (counts.get('scheduled') ?? 0),
        waiting: seen.waiting + waiting,
        ready: seen.ready + totals.ready,
        finished: seen.finished + totals.finished,
        cancelled: seen.cancelled + totals.cancelled,
      })
    }
    return queues.flatMap(bellsOf)
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
    const before = this.#seen
    const rows = this.#statements.get('counts/watch').all()
    this.#seen = new Map(rows.map((row) => [text(row.name), seenIn(row)]))
    return [...this.#seen].flatMap(([name, after]) => bellsBetween(name, before.get(name) ?? NOTHING, after))
  }
}
