/**
 * Bells for the listeners of this connection. SQLite does not tell of commits by other connections. But `pragma data_version` changes with
 * each of them and costs microseconds, so it is read every few milliseconds. If it has changed, and after commits of our own, which do not
 * change it, the queues are compared with what they were.
 */
import type { Bell } from '../../store.ts'
import { type Connection, Statements } from './connection/statements.ts'
import { flag, integer, type Row, text } from './connection/values.ts'
import type { Queue } from './queues.ts'

const POLL_INTERVAL = 10
/** What may have happened to the jobs of a queue that is gone. */
const ENDINGS = ['room', 'finished', 'cancelled'] as const

/** @param ours what we have committed since the last look */
function bellsOf(row: Row, ours: readonly Queue[]): Bell[] {
  const queue = text(row.name)
  const bells: Bell[] = []
  for (const kind of ['work', 'room'] as const) if (flag(row[kind])) bells.push({ kind, queue })
  for (const kind of ['finished', 'cancelled'] as const) {
    const count = integer(row[kind])
    if (count === 0) continue
    const ids = ours.flatMap((each) => (each.name === queue ? each[kind] : []))
    // Where others have ended jobs as well, theirs are not known.
    bells.push(ids.length === count ? { kind, queue, ids } : { kind, queue })
  }
  return bells
}

export class Notifier {
  readonly #statements: Statements
  readonly #version: () => unknown
  readonly #ring: (bells: Bell[]) => void
  #lastVersion: unknown
  #timer: NodeJS.Timeout | null = null

  constructor(connection: Connection, ring: (bells: Bell[]) => void) {
    const version = connection.prepare('pragma data_version')
    this.#version = () => Object.values(version.get() ?? {})[0]
    this.#statements = new Statements(connection)
    this.#statements.run('bells/seen')
    this.#ring = ring
  }

  listen(wanted: boolean): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    if (!wanted) return
    // Something may have happened before anyone listened, so look at once.
    this.#poll()
    this.#timer = setInterval(() => this.#poll(), POLL_INTERVAL)
  }

  /** After a commit of ours. @returns the bells that it rings */
  committed(ours: readonly Queue[]): Bell[] {
    if (this.#timer === null) return []
    const queues = JSON.stringify(ours.map(({ name }) => name))
    try {
      return [...this.#statements.all('bells/look', { queues }).flatMap((row) => bellsOf(row, ours)), ...this.#gone()]
    } catch {
      // A commit of ours does not change the version: the next look is to be at all queues.
      this.#lastVersion = undefined
      return []
    }
  }

  #poll(): void {
    try {
      const version = this.#version()
      if (version === this.#lastVersion) return
      const rows = this.#statements.all('bells/look', { queues: null })
      const bells = [...rows.flatMap((row) => bellsOf(row, [])), ...this.#gone()]
      this.#lastVersion = version
      if (bells.length > 0) this.#ring(bells)
    } catch {
      // The file is locked or fails. The next look tells of what this one missed; the next operation has the error for
      // someone who can act on it.
    }
  }

  /** Who waits for room in a queue that was removed, or for a job of it, looks. */
  #gone(): Bell[] {
    const queues = this.#statements.all('bells/gone').map(({ name = null }) => text(name))
    return queues.flatMap((queue) => ENDINGS.map((kind) => ({ kind, queue })))
  }
}
