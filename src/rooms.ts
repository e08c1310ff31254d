/**
 * Pushes to queues opened with `whenFull: 'wait'`. Each queue has a line, first come, first served: whoever comes joins its end,
 * and only its head is ever tried, so that nobody is overtaken, and a room that was made is not fought over by all.
 *
 *   idle ──push──► trying ──all stored──► idle
 *                  │    ▲
 *                  full └─ a bell, or a second has passed ── blocked
 *
 * While a try is under way those who come wait for the next one, as with any other push (see `gather.ts`).
 */
import { MillpondError } from './errors.ts'
import { atEndOfTurn } from './gather.ts'
import { bytesOf, GROUP } from './push.ts'
import type { NewJob, PushOutcome, Store } from './store.ts'

const POLL = 1000
/** Tried at first when there may be room again; more as long as all of it is taken. */
const FEW = 16

interface Entry extends PromiseWithResolvers<PushOutcome> {
  job: NewJob
  call: object | undefined
}

interface Line {
  entries: Entry[]
  trying: boolean
  /** Of the entries, from the first, how many were told of as having met a full queue. */
  told: number
  /** Raised by every bell, so that one that rings during a try is not missed. */
  bells: number
}

export class Rooms {
  readonly #store: Store
  readonly #lines = new Map<string, Line>()
  readonly #listen: () => void
  readonly #onFull: (queue: string) => void
  #watching = false
  /** Not unref'd: somebody waits to push. */
  #poll: NodeJS.Timeout | undefined
  #closed = false
  #idle: (() => void)[] = []

  /**
   * @param listen asks for bells, from now until the pond closes
   * @param onFull told once for each push that has to wait
   */
  constructor(store: Store, listen: () => void, onFull: (queue: string) => void) {
    this.#store = store
    this.#listen = listen
    this.#onFull = onFull
  }

  /** Some queue will wait for room. */
  watch(): void {
    if (this.#watching) return
    this.#watching = true
    this.#listen()
  }

  /**
   * Resolves once it is stored, never to `full`.
   * @param call the same for all jobs of one call: once one of them has failed, none after it is stored
   * @throws Closed once it would have to wait, and the store's own
   */
  push(job: NewJob, call?: object): Promise<PushOutcome> {
    let line = this.#lines.get(job.queue)
    if (line === undefined) {
      line = { entries: [], trying: false, told: 0, bells: 0 }
      this.#lines.set(job.queue, line)
    }
    const entry: Entry = { job, call, ...Promise.withResolvers<PushOutcome>() }
    line.entries.push(entry)
    // A line that is not being tried and had somebody in it is blocked.
    if (!line.trying && line.entries.length === 1) this.#try(job.queue, line, GROUP.items)
    else if (!line.trying) this.#tell(job.queue, line)
    return entry.promise
  }

  /** A bell: there may be room in the queue. */
  rung(queue: string): void {
    const line = this.#lines.get(queue)
    if (line === undefined) return
    line.bells++
    if (!line.trying) this.#try(queue, line, FEW)
  }

  /** Whoever is blocked gets `Closed`. Resolves when the tries under way are over. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#poll)
    for (const [queue, line] of this.#lines) if (!line.trying) this.#leave(queue, line)
    if (this.#lines.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #try(queue: string, line: Line, most: number): void {
    line.trying = true
    atEndOfTurn(() => void this.#tryNow(queue, line, most))
  }

  async #tryNow(queue: string, line: Line, most: number): Promise<void> {
    const head = headOf(line.entries, most)
    const { bells } = line
    try {
      const outcomes = await this.#store.push(head.map(({ job }) => job))
      const full: Entry[] = []
      for (const [index, entry] of head.entries()) {
        const outcome = outcomes[index]
        if (outcome === undefined || outcome.status === 'full') full.push(entry)
        else entry.resolve(outcome)
      }
      line.entries.splice(0, head.length, ...full)
      line.told = Math.max(0, line.told - (head.length - full.length))
      if (full.length > 0 && line.bells === bells) this.#block(queue, line)
      else if (line.entries.length > 0) this.#try(queue, line, full.length > 0 ? FEW : most * 2)
      else this.#leave(queue, line)
    } catch (error) {
      const calls = new Set(head.map(({ call }) => call))
      const failed = (entry: Entry, at: number) =>
        at < head.length || (entry.call !== undefined && calls.has(entry.call))
      for (const entry of line.entries.filter(failed)) entry.reject(error)
      line.told = line.entries.slice(0, line.told).filter((entry, at) => !failed(entry, at)).length
      line.entries = line.entries.filter((entry, at) => !failed(entry, at))
      if (line.entries.length > 0) this.#try(queue, line, most)
      else this.#leave(queue, line)
    }
  }

  #block(queue: string, line: Line): void {
    line.trying = false
    if (this.#closed) {
      this.#leave(queue, line)
      return
    }
    this.#tell(queue, line)
    this.#poll ??= setInterval(() => {
      for (const name of [...this.#lines.keys()]) this.rung(name)
    }, POLL)
  }

  #tell(queue: string, line: Line): void {
    for (; line.told < line.entries.length; line.told++) this.#onFull(queue)
  }

  /** The line is no more; who is still in it has waited in vain. */
  #leave(queue: string, line: Line): void {
    this.#lines.delete(queue)
    for (const entry of line.entries) entry.reject(closed())
    if (this.#lines.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

/** As many from the first as one call carries. */
function headOf(entries: readonly Entry[], most: number): Entry[] {
  let count = 0
  let bytes = 0
  for (; count < Math.min(entries.length, most, GROUP.items); count++) {
    const entry = entries[count]
    bytes += entry === undefined ? 0 : bytesOf(entry.job)
    if (count > 0 && bytes > GROUP.bytes) break
  }
  return entries.slice(0, count)
}

function closed(): MillpondError {
  return new MillpondError('Closed', 'the pond was closed while a push waited for room; the job was not stored')
}
