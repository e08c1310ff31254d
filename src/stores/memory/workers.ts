import type { WorkerBeat, WorkerRecord } from '../../values/operations/requests.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'

/** Ms after which a worker that was not heard of is forgotten. */
const SILENCE = DEFAULTS.store.workerSilence

/** The workers that were heard of, by id and queue. */
export class Workers {
  readonly #workers = new Map<string, Omit<WorkerRecord, 'silence'>>()

  heard({ id, queue, host, pid, slots, busy, lanes = null }: WorkerBeat, now: number): void {
    this.forgetSilent(now)
    const key = `${queue} ${id}`
    const since = this.#workers.get(key)?.since ?? now
    this.#workers.set(key, { id, queue, host, pid, slots, busy, lanes, since, seen: now })
  }

  remove(id: string): void {
    for (const [key, worker] of this.#workers) if (worker.id === id) this.#workers.delete(key)
  }

  forgetSilent(now: number): void {
    for (const [key, { seen }] of this.#workers) if (seen + SILENCE < now) this.#workers.delete(key)
  }

  /** By when they were first heard of. */
  all(now: number): WorkerRecord[] {
    const known = [...this.#workers.values()].filter(({ seen }) => seen + SILENCE >= now)
    const told = known.map((one) => ({ ...one, silence: Math.max(0, now - one.seen) }))
    return told.sort((a, b) => a.since - b.since || compare(a.id, b.id) || compare(a.queue, b.queue))
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
