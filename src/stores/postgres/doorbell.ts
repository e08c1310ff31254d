/**
 * Bells between processes.
 *
 * In this process they ring at once. To others they go as notifications, of which none is sent for work unless somebody was
 * noted as asleep (`contract/postgres/claim.sql`), since every NOTIFY makes commits queue up; the other kinds are sent at most
 * every 20 ms per queue. Where LISTEN is impossible, the counts are looked at instead, ten times a second.
 */
import { randomUUID } from 'node:crypto'
import { storeError } from '../../errors.ts'
import type { Bell } from '../../store.ts'
import { Bells } from './bells.ts'
import type { Caller } from './caller.ts'
import { integer, row, text } from './records.ts'

type Kind = Bell['kind']
const KINDS: readonly Kind[] = ['work', 'room', 'finished', 'cancelled']
/** Ms between notifications of one kind and queue. */
const RING_AGAIN = 20
const RELISTEN = 250

interface Seen {
  capacity: number | null
  paused: boolean
  ready: number
  room: number
  finished: number
  stopped: number
}

export class Doorbell {
  readonly bells = new Bells()
  /** Names this process among those that are noted as asleep. */
  readonly #name = randomUUID()
  readonly #caller: Caller
  readonly #polling: number | undefined
  /** Queues that a worker here claims from, or that somebody here waits for. */
  readonly #queues = new Set<string>()
  readonly #quiet = new Set<string>()
  readonly #again = new Set<string>()
  readonly #seen = new Map<string, Seen>()
  #listeners = 0
  #started = false
  #up = false
  #looking = false
  #timer: NodeJS.Timeout | undefined

  /** @param polling ms between looks; undefined: LISTEN */
  constructor(caller: Caller, polling: number | undefined) {
    this.#caller = caller
    this.#polling = polling
  }

  /** For claim: null while no notification could reach us. */
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

  /** Somebody here will want to know of this queue. */
  concern(queue: string): void {
    this.#queues.add(queue)
  }

  /** Tells other processes; the caller has rung here already. */
  tell(kind: Kind, queue: string): void {
    if (this.#polling !== undefined) return
    const name = `${kind}:${queue}`
    if (this.#quiet.has(name)) {
      this.#again.add(name)
      return
    }
    this.#quiet.add(name)
    this.#send(kind, queue)
    setTimeout(() => {
      this.#quiet.delete(name)
      if (this.#again.delete(name)) this.tell(kind, queue)
    }, RING_AGAIN).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.bells.silence()
    this.#listeners = 0
    this.#again.clear()
  }

  #send(kind: Kind, queue: string): void {
    if (this.#caller.closed) return
    // A bell may be missed: whoever waits looks by himself once a second.
    this.#caller.rows('ring($1::text, $2::text)', [kind, queue]).catch(ignored)
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    if (this.#polling === undefined) this.#listen()
    else this.#plan(0)
  }

  #listen(): void {
    const { database, schema } = this.#caller
    const ready = () => {
      this.#up = true
      // What was rung before went unheard.
      for (const queue of this.#queues) for (const kind of KINDS) this.bells.ring(kind, queue)
    }
    const retry = () => {
      if (!this.#caller.closed) this.#timer = setTimeout(() => this.#listen(), RELISTEN).unref()
    }
    this.#caller.track(database.listen(schema, (payload) => this.#heard(payload), ready)).catch(retry)
  }

  #heard(payload: string): void {
    const at = payload.indexOf(':')
    const kind = KINDS.find((known) => known === payload.slice(0, at))
    if (kind !== undefined) this.bells.ring(kind, payload.slice(at + 1))
  }

  #plan(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), ms).unref()
  }

  #look(): void {
    if (this.#caller.closed) return
    const every = this.#polling ?? RELISTEN
    if (this.#looking || this.#listeners === 0) {
      this.#plan(every)
      return
    }
    this.#looking = true
    this.#caller
      .rows('watch() as answer', [])
      .then((rows) => {
        for (const { answer } of rows) this.#compare(row(answer))
      }, ignored)
      .finally(() => {
        this.#looking = false
        this.#plan(every)
      })
  }

  #compare(answer: Record<string, unknown>): void {
    const queue = text(answer.queue)
    const now: Seen = {
      capacity: answer.capacity === null ? null : integer(answer.capacity),
      paused: answer.paused === true,
      ready: integer(answer.ready),
      room: integer(answer.room),
      finished: integer(answer.finished),
      stopped: integer(answer.stopped),
    }
    const before = this.#seen.get(queue)
    this.#seen.set(queue, now)
    // Of a queue that is new to us everything counts that ever happened in it.
    const { ready = 0, room = 0, finished = 0, stopped = 0, paused = false } = before ?? {}
    if (now.ready !== ready || (paused && !now.paused)) this.bells.ring('work', queue)
    if (now.capacity !== before?.capacity || (now.capacity !== null && now.room !== room))
      this.bells.ring('room', queue)
    if (now.finished !== finished) this.bells.ring('finished', queue)
    if (now.stopped !== stopped) this.bells.ring('cancelled', queue)
  }
}

/** The store's trouble is told by the calls that somebody waits for. */
function ignored(error: unknown): void {
  storeError(error, 'ring')
}
