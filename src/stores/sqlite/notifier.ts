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

/** Of a queue that was not there before. Null of `capacity` is no limit. */
const NOTHING: Row = {
  capacity: null,
  paused: 0,
  scheduled: 0,
  waiting: 0,
  running: 0,
  limits_total: 0,
  ready_total: 0,
  finished_total: 0,
  cancelled_total: 0,
}

const held = (row: Row): number => integer(row.scheduled) + integer(row.waiting)

/** What another connection did to a queue between two looks. */
function bellsBetween(queue: string, before: Row, after: Row): Bell[] {
  const bells: Bell[] = []
  const hasChanged = (column: string): boolean => before[column] !== after[column]
  const isResumed = hasChanged('paused') && after.paused === 0
  // A start may have taken the place of the job that ended.
  const isFreed =
    after.has_limits === 1 && (hasChanged('finished_total') || integer(after.running) < integer(before.running))
  const mayStart = hasChanged('ready_total') || hasChanged('limits_total') || isResumed || isFreed
  if (integer(after.waiting) > 0 && mayStart) bells.push({ kind: 'work', queue })
  if (hasChanged('finished_total')) bells.push({ kind: 'finished', queue })
  if (hasChanged('cancelled_total')) bells.push({ kind: 'cancelled', queue })
  const capacity = integerOrNull(after.capacity)
  const isLimited = before.capacity !== null || capacity !== null
  // A job that was pushed and claimed between two looks leaves no trace but in `ready_total`.
  const hasMoved = hasChanged('capacity') || hasChanged('ready_total') || held(before) !== held(after)
  // Also where the queue was not full before: pushes of this process may have met the limit since the last look.
  if (isLimited && hasMoved && (capacity === null || held(after) < capacity)) bells.push({ kind: 'room', queue })
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
  /** The queues' rows. Our own commits do not change `data_version`, and are added here. */
  #seen = new Map<string, Row>()
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
    for (const { name, counts } of queues) {
      const seen = { ...(this.#seen.get(name) ?? NOTHING) }
      for (const [column, by] of Object.entries(counts)) if (column in seen) seen[column] = integer(seen[column]) + by
      this.#seen.set(name, seen)
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
    this.#seen = new Map(rows.map((row) => [text(row.name), row]))
    return [...this.#seen].flatMap(([name, after]) => bellsBetween(name, before.get(name) ?? NOTHING, after))
  }
}
