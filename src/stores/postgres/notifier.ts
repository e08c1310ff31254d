/**
 * Bells between processes.
 *
 * In this process they ring at once. To others the SQL functions send notifications, and only where somebody was noted as waiting for one
 * (the table `sleepers`), since every NOTIFY makes commits queue up: a claim that found no job waits for work, a look-up of a job that goes
 * on for its end, a push to a full queue for room. Where LISTEN is impossible, the counts are looked at instead, ten times a second while
 * this process has something to do or sees others at work, and down to one in 0.8 s when not: many idle processes would keep a server busy.
 */
import { randomUUID } from 'node:crypto'
import type { Bell, ClaimRequest } from '../../store.ts'
import { storeError } from '../../values/errors.ts'
import { Bells } from '../bells.ts'
import type { Calls } from './connection/calls.ts'
import { integer, orNull, row, text, textArray } from './wire.ts'

type Kind = Bell['kind']
const KINDS: readonly Kind[] = ['work', 'room', 'finished', 'cancelled']
/** Ms between bells of one kind and queue that come from elsewhere, but for work: each of them makes whoever waits look anew. */
const RING_AGAIN = 20
/** Ms until it listens anew, twice as many each time. */
const FIRST_PAUSE = 20
const LONGEST_PAUSE = 500
/** Ms without anything new after which looks become rarer, by so much each, down to one in so many intervals. */
const CALM = 2000
const RARER = 1.25
const RAREST = 8
/** Ms until the claim after one that brought some jobs, but fewer than asked for. */
const AFTER_SHORT = 5
/** Ms until a claim is repeated while pushes are under way that may have missed who is asleep; doubled until then, when a worker looks by itself. */
const FIRST_AGAIN = 1
const LAST_AGAIN = 512
/** Names of queues that are kept: a client may claim from any number of names. What is forgotten delays a bell by a second at the most. */
const MAX_QUEUES = 10_000

interface Seen {
  capacity: number | null
  paused: boolean
  /** Changes with the queue's limits. */
  limits: number
  ready: number
  room: number
  finished: number
  stopped: number
}

const UNSEEN = { ready: 0, room: 0, finished: 0, stopped: 0, paused: false, limits: 0 }

export class Notifier {
  readonly bells = new Bells()
  /** Names this process among those that are noted as waiting. */
  readonly #name = randomUUID()
  readonly #calls: Calls
  readonly #polling: number | undefined
  /** Queues that a worker here claims from, or in which somebody here waits for something. */
  readonly #queues = new Set<string>()
  /** `kind:queue` that rang a moment ago, and of those the ones that are to ring once more. */
  readonly #resting = new Set<string>()
  readonly #again = new Set<string>()
  /** `kind:queue` that this process was noted for. */
  readonly #noted = new Set<string>()
  #seen: ReadonlyMap<string, Seen> = new Map<string, Seen>()
  #listeners = 0
  #started = false
  #up = false
  #looking = false
  #timer: NodeJS.Timeout | undefined
  #pause = FIRST_PAUSE
  /** The present poll interval in ms, and the `performance.now()` of the last activity that makes this process poll often. */
  #every: number
  #stirred = performance.now()
  /** Per queue: ms after which its last claim was repeated. */
  readonly #repeated = new Map<string, number>()

  /** @param polling ms between looks; undefined: LISTEN */
  constructor(calls: Calls, polling: number | undefined) {
    this.#calls = calls
    this.#polling = polling
    this.#every = polling ?? 0
  }

  /** For the operations that note who waits: null while no notification could reach us. */
  get listener(): string | null {
    return this.#up ? this.#name : null
  }

  listen(listener: (bell: Bell) => void): () => void {
    const stop = this.bells.listen(listener)
    this.#listeners++
    this.#start()
    let stopped = false
    return () => {
      if (stopped) return
      stopped = true
      stop()
      this.#listeners--
    }
  }

  /** Somebody here wants to know of this queue. */
  concern(queue: string): void {
    if (this.#queues.size >= MAX_QUEUES) this.#queues.clear()
    this.#queues.add(queue)
  }

  /** A call has noted us as waiting. What happened while it was under way may ring for nobody: look once more. */
  noted(kind: 'finished' | 'room', queue: string): void {
    this.concern(queue)
    const name = `${kind}:${queue}`
    if (!this.#up || this.#noted.has(name)) return
    if (this.#noted.size >= MAX_QUEUES) this.#noted.clear()
    this.#noted.add(name)
    this.#again.add(name)
    this.#rest(kind, queue)
  }

  /** Something is going on here, so it matters what others do: no more rare looks. */
  stir(): void {
    if (this.#polling === undefined || !this.#started) return
    this.#stirred = performance.now()
    if (this.#every === this.#polling) return
    this.#every = this.#polling
    if (this.#looking) return
    clearTimeout(this.#timer)
    this.#plan(this.#every)
  }

  /** After a claim. @param found how many jobs it got @param asleep what was pushed meanwhile may ring for nobody: look once more */
  claimed({ queue, limit }: Pick<ClaimRequest, 'queue' | 'limit'>, found: number, asleep: boolean): void {
    if (found > 0 || !asleep) this.#repeated.delete(queue)
    if (found > 0) this.stir()
    // It was not noted as asleep: in a steady stream each push would notify it.
    if (found > 0 && found < limit && this.#up) setTimeout(() => this.bells.ring('work', queue), AFTER_SHORT).unref()
    if (!asleep) return
    const before = this.#repeated.get(queue)
    const ms = before === undefined ? 0 : Math.max(before * 2, FIRST_AGAIN)
    if (ms > LAST_AGAIN) return
    if (this.#repeated.size >= MAX_QUEUES) this.#repeated.clear()
    this.#repeated.set(queue, ms)
    if (ms === 0) this.bells.ring('work', queue)
    else setTimeout(() => this.bells.ring('work', queue), ms).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.bells.silence()
    this.#listeners = 0
    this.#again.clear()
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    if (this.#polling === undefined) this.#listen()
    else this.#plan(0)
  }

  #listen(): void {
    const { database, schema } = this.#calls
    const ready = () => {
      this.#pause = FIRST_PAUSE
      this.#up = true
      this.#noted.clear()
      // What was rung before went unheard.
      for (const queue of this.#queues) for (const kind of KINDS) this.bells.ring(kind, queue)
    }
    const again = () => {
      if (this.#calls.closed) return
      this.#timer = setTimeout(() => this.#listen(), this.#pause).unref()
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
    }
    this.#calls.track(database.listen(schema, (payload) => this.#heard(payload), ready, again)).catch(again)
  }

  #heard(payload: string): void {
    const at = payload.indexOf(':')
    const kind = KINDS.find((known) => known === payload.slice(0, at))
    if (kind === undefined) return
    this.#noted.delete(payload)
    const queue = payload.slice(at + 1)
    if (kind === 'work') this.bells.ring(kind, queue)
    else if (this.#resting.has(payload)) this.#again.add(payload)
    else {
      this.bells.ring(kind, queue)
      this.#rest(kind, queue)
    }
  }

  /** For a while it does not ring; what should ring meanwhile does so at the end. */
  #rest(kind: Kind, queue: string): void {
    const name = `${kind}:${queue}`
    if (this.#resting.has(name)) return
    this.#resting.add(name)
    setTimeout(() => {
      this.#resting.delete(name)
      if (!this.#again.delete(name)) return
      this.bells.ring(kind, queue)
      this.#rest(kind, queue)
    }, RING_AGAIN).unref()
  }

  #plan(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), ms).unref()
  }

  #look(): void {
    if (this.#calls.closed) return
    if (this.#looking || this.#listeners === 0) {
      this.#plan(this.#every)
      return
    }
    this.#looking = true
    this.#calls
      // Until it is known what somebody here waits for: all.
      .answers('watch($1)', [this.#queues.size === 0 ? null : textArray([...this.#queues])])
      .then((answers) => {
        // Queues that were removed are forgotten.
        const before = this.#seen
        this.#seen = new Map(answers.map((answer) => this.#compare(row(answer), before)))
      }, ignored)
      .finally(() => {
        this.#looking = false
        if (this.#polling !== undefined && performance.now() - this.#stirred > CALM)
          this.#every = Math.min(this.#every * RARER, this.#polling * RAREST)
        this.#plan(this.#every)
      })
  }

  #compare(answer: Record<string, unknown>, seen: ReadonlyMap<string, Seen>): [string, Seen] {
    const queue = text(answer.queue)
    const now: Seen = {
      capacity: orNull(answer.capacity, integer),
      paused: answer.paused === true,
      limits: orNull(answer.limits, integer) ?? 0,
      ready: integer(answer.ready),
      room: integer(answer.room),
      finished: integer(answer.finished),
      stopped: integer(answer.stopped),
    }
    const before = seen.get(queue)
    // Of a queue that is new to us everything counts that ever happened in it.
    const { ready, room, finished, stopped, paused, limits } = before ?? UNSEEN
    if (now.ready !== ready || now.room !== room || now.finished !== finished) this.stir()
    if (now.ready !== ready || now.limits !== limits || (paused && !now.paused)) this.bells.ring('work', queue)
    if (now.capacity !== before?.capacity || (now.capacity !== null && now.room !== room))
      this.bells.ring('room', queue)
    if (now.finished !== finished) this.bells.ring('finished', queue)
    if (now.stopped !== stopped) this.bells.ring('cancelled', queue)
    return [queue, now]
  }
}

/** The store's trouble is told by the calls that somebody waits for. */
function ignored(error: unknown): void {
  storeError(error, 'watch')
}
