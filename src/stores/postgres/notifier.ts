/**
 * Bells between processes.
 *
 * In this process they ring at once. To others the SQL functions send notifications, and only where somebody was noted as waiting for one
 * (the table `sleepers`), since every NOTIFY makes commits queue up: a claim that found no job waits for work, a look-up of a job that goes
 * on for its end, a push to a full queue for room. Where LISTEN is impossible, the counts are looked at instead, ten times a second while
 * this process has something to do or sees others at work, and down to one in 0.8 s when not: many idle processes would keep a server busy.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bell } from '../../store.ts'
import type { ClaimRequest } from '../../values/jobs/records.ts'
import { Bells, KINDS, type Kind } from '../bells.ts'
import type { Calls } from './connection/calls.ts'
import { textArray } from './wire.ts'

/** Least ms between bells of one kind and queue from other processes, except `work`: each bell makes every waiting call look anew. */
const RING_AGAIN = 20
/** Ms until it listens anew, twice as many each time. */
const FIRST_PAUSE = 20
const LONGEST_PAUSE = 500
/** Ms without anything new after which looks become rarer: one in so many intervals. */
const CALM = 2000
const RARE = 8
/** Ms until the claim after one that brought some jobs, but fewer than asked for. */
const AFTER_SHORT = 5
/**
 * Ms until an empty claim is repeated: a push under way may not have seen that this process sleeps. Each further wait is twice as long.
 * After the last one, the worker's own poll is soon enough.
 */
const FIRST_AGAIN = 1
const LAST_AGAIN = 512
/** Names that are kept. What is forgotten delays a bell by a second at the most. */
const MAX_NAMES = 10_000

/** What `watch` answers of a queue: whenever a value changes, the bell of that name rings. */
type Watched = { queue: string } & Record<Kind, string | number | null>

/** What may have happened to the jobs of a queue that is gone. */
const ENDINGS: readonly Kind[] = ['room', 'finished', 'cancelled']

export class Notifier {
  readonly bells = new Bells()
  /** Names this process among those that are noted as waiting. */
  readonly #name = randomUUID()
  readonly #calls: Calls
  readonly #polling: number | undefined
  /** `kind:queue` that rang a moment ago: whether it is to ring once more. */
  readonly #resting = new Map<string, boolean>()
  /** `kind:queue` that this process was noted for. */
  readonly #noted = new Set<string>()
  /** Per queue: ms after which its last claim was repeated. */
  readonly #repeated = new Map<string, number>()
  /** Queues that were claimed from, in which the end of a job may let another one start. */
  readonly #slots = new Set<string>()
  #seen: ReadonlyMap<string, Watched> = new Map<string, Watched>()
  #listeners = 0
  #closed = false
  #running: Promise<void> | undefined
  #up = false
  /** The `performance.now()` of the last activity that makes this process poll often. */
  #stirred = performance.now()
  /** Ends the pause before the next look. */
  #wake = () => {}

  /** @param polling ms between looks; undefined: LISTEN */
  constructor(calls: Calls, polling: number | undefined) {
    this.#calls = calls
    this.#polling = polling
  }

  /** For the operations that note who waits: null while no notification could reach us. */
  get listener(): string | null {
    return this.#up ? this.#name : null
  }

  listen(listener: (bell: Bell) => void): () => void {
    const stop = this.bells.listen(listener)
    this.#listeners++
    this.#running ??= this.#polling === undefined ? this.#hear() : this.#watch(this.#polling)
    let stopped = false
    return () => {
      if (!stopped) this.#listeners--
      stopped = true
      stop()
    }
  }

  /** A call has noted us as waiting. What happened while it was under way may ring for nobody: look once more. */
  noted(kind: 'finished' | 'room', queue: string): void {
    this.bells.concern(queue)
    if (!this.#up || this.#noted.has(`${kind}:${queue}`)) return
    if (this.#noted.size >= MAX_NAMES) this.#noted.clear()
    this.#noted.add(`${kind}:${queue}`)
    this.#rest(kind, queue, true)
  }

  /** Something is going on here, so it matters what others do: no more rare looks. */
  stir(): void {
    const wasCalm = this.#isCalm()
    this.#stirred = performance.now()
    if (wasCalm) this.#wake()
  }

  /**
   * A claim was answered.
   * @param found how many jobs it got
   * @param answer asleep: a push during the claim may have notified nobody, so claim once more. slots: the end of a job may let another one
   *   start
   */
  claimed(
    { queue, limit }: Pick<ClaimRequest, 'queue' | 'limit'>,
    found: number,
    { asleep, slots }: { asleep: boolean; slots: boolean },
  ): void {
    if (slots) this.#slots.add(queue)
    else this.#slots.delete(queue)
    if (found > 0) this.stir()
    // It was not noted as asleep: in a steady stream each push would notify it.
    if (found > 0 && found < limit && this.#up) this.#ringIn(AFTER_SHORT, queue)
    if (!asleep) {
      this.#repeated.delete(queue)
      return
    }
    const before = this.#repeated.get(queue)
    const ms = before === undefined ? 0 : Math.max(before * 2, FIRST_AGAIN)
    if (ms > LAST_AGAIN) return
    if (this.#repeated.size >= MAX_NAMES) this.#repeated.clear()
    this.#repeated.set(queue, ms)
    if (ms === 0) this.bells.ring('work', queue)
    else this.#ringIn(ms, queue)
  }

  /** Running jobs of the queue were ended by this process: its workers need not wait for the store to tell them of a free slot. */
  freed(queue: string): void {
    if (this.#slots.has(queue)) this.bells.ring('work', queue)
  }

  close(): void {
    this.#closed = true
    this.bells.silence()
  }

  #ringIn(ms: number, queue: string): void {
    setTimeout(() => this.bells.ring('work', queue), ms).unref()
  }

  async #hear(): Promise<void> {
    let pause = FIRST_PAUSE
    const ready = () => {
      pause = FIRST_PAUSE
      this.#up = true
      this.#noted.clear()
      this.bells.ringAll()
    }
    while (!this.#closed) {
      await this.#calls.database.listen(this.#calls.schema, (payload) => this.#heard(payload), ready).catch(ignored)
      await sleep(pause, undefined, { ref: false })
      pause = Math.min(pause * 2, LONGEST_PAUSE)
    }
  }

  #heard(payload: string): void {
    const at = payload.indexOf(':')
    const kind = KINDS.find((known) => known === payload.slice(0, at))
    if (kind === undefined) return
    this.#noted.delete(payload)
    const queue = payload.slice(at + 1)
    if (this.#resting.has(payload)) this.#resting.set(payload, true)
    else {
      this.bells.ring(kind, queue)
      if (kind !== 'work') this.#rest(kind, queue, false)
    }
  }

  /** For a while it does not ring; what should ring meanwhile does so at the end. */
  #rest(kind: Kind, queue: string, again: boolean): void {
    const name = `${kind}:${queue}`
    const isResting = this.#resting.has(name)
    this.#resting.set(name, again)
    if (isResting) return
    setTimeout(() => {
      const due = this.#resting.get(name)
      this.#resting.delete(name)
      if (!due) return
      this.bells.ring(kind, queue)
      this.#rest(kind, queue, false)
    }, RING_AGAIN).unref()
  }

  async #watch(polling: number): Promise<void> {
    while (!this.#closed) {
      // If the store cannot be reached, the calls of producers and workers fail as well, and tell of it.
      if (this.#listeners > 0) await this.#calls.track(this.#look()).catch(ignored)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        setTimeout(resolve, this.#isCalm() ? polling * RARE : polling).unref()
      })
    }
  }

  #isCalm(): boolean {
    return performance.now() - this.#stirred > CALM
  }

  async #look(): Promise<void> {
    // Until it is known what somebody here waits for: all.
    const queues = [...this.bells.concerns]
    const answers = await this.#calls.answers<Watched>('watch($1)', [queues.length === 0 ? null : textArray(queues)])
    const before = this.#seen
    this.#seen = new Map(answers.map((answer) => [answer.queue, answer]))
    // Of a queue that was removed: who waits for room in it, or for a job of it, looks.
    for (const queue of before.keys()) {
      if (!this.#seen.has(queue)) for (const kind of ENDINGS) this.bells.ring(kind, queue)
    }
    for (const answer of answers) {
      const changed = KINDS.filter((kind) => answer[kind] !== before.get(answer.queue)?.[kind])
      for (const kind of changed) this.bells.ring(kind, answer.queue)
      if (changed.length > 0) this.stir()
    }
  }
}

function ignored(): void {}
