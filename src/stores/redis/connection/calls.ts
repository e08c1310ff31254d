/**
 * Calls to the server over one connection, or one cluster, each with a deadline.
 *
 *   sent ──► answered
 *    ▲ │ the connection is lost, the server loads or changes its role, …
 *    │ ▼
 *   pause ──deadline──► StoreUnavailable
 *
 * A call whose answer is lost is sent again until its deadline, and then rejected: it may have taken effect all the same. A script gets
 * a mark that it is repeated. A connection that owes an answer at a deadline is replaced: nothing else tells that a server has stopped
 * without a word.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Batcher } from '../../../batch/batcher.ts'
import { MillpondError } from '../../../values/errors/errors.ts'
import { ChosenDatabase } from '../../redis-client/chosen-database.ts'
import { connected, reconnectIfEnded, replaceConnection } from '../../redis-client/client.ts'
import {
  closed,
  isMoved,
  isNoScript,
  isPassing,
  isUndone,
  toMillpondError,
  tooLong,
} from '../../redis-client/errors.ts'
import { bytesOf, extraTime } from '../../redis-client/extra-time.ts'
import type { Client } from '../../redis-client/settings.ts'
import type { Settings } from '../settings.ts'
import { isTooLong } from './longest-argument.ts'
import { scriptOf } from './scripts.ts'

export type Arg = string | Buffer | number

interface Call {
  command: [string, ...Arg[]]
  /** Where the command says whether it was sent before, if it does. */
  againAt?: number
  /** Of a script: for a server that does not know it. */
  text?: string
  deadline: number
  /** Sent, and neither answered nor failed. */
  underWay: boolean
  /** Answered or rejected. */
  over: boolean
}

/** The place of a script's second argument in its command. */
const AGAIN_AT = 5
/** Milliseconds before a call that could not be sent is tried again. */
const RETRY_PAUSE = 25
/** Milliseconds that calls under way get to finish when the store closes. */
const CLOSE_PAUSE = 1000

export class Calls {
  readonly client: Client
  readonly #settings: Settings
  /** With which all keys begin. */
  readonly #start: string
  readonly #database: ChosenDatabase
  /**
   * Calls that wait for replicas: the server answers nothing else on a connection meanwhile, so what comes then goes together afterwards.
   */
  readonly #replicated: Batcher<Call, unknown>
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false
  #replacedAt = Number.NEGATIVE_INFINITY
  /** Of the calls under way. */
  #bytes = 0

  constructor(client: Client, settings: Settings) {
    this.client = client
    this.#database = new ChosenDatabase(client, settings.where)
    this.#settings = settings
    this.#start = `{${settings.prefix}}:`
    const unlimited = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
    this.#replicated = new Batcher((calls) => this.#sendAndWait(calls), unlimited)
  }

  /** @throws StoreUnavailable where there is no connection in time, or none to the right database */
  async connected(): Promise<void> {
    await connected(this.client, this.#settings)
    await this.#database.settled(this.#settings.timeout)
  }

  get closed(): boolean {
    return this.#closed
  }

  assertOpen(): void {
    if (this.#closed) throw closed()
  }

  /**
   * @param args the second one becomes `1` when the script is sent again after a lost answer
   * @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed
   */
  async script(name: string, args: readonly [Arg, Arg, ...Arg[]]): Promise<readonly unknown[]> {
    const { sha, text } = scriptOf(name)
    const reply = await this.#call(['evalsha', sha, 1, this.#start, ...args], { text, againAt: AGAIN_AT })
    if (Array.isArray(reply)) return reply
    throw toMillpondError(new Error(`an answer of type ${typeof reply}`), this.#settings.where)
  }

  /** Any other command. @throws as `script` */
  command(...command: [string, ...Arg[]]): Promise<unknown> {
    return this.#call(command, {})
  }

  /** Refuses further calls, and disconnects once those under way are settled, which have a second for it. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.race([Promise.allSettled(this.#underWay), pause(CLOSE_PAUSE, undefined, { ref: false })])
    this.client.disconnect()
  }

  async #call(command: [string, ...Arg[]], options: Pick<Call, 'text' | 'againAt'>): Promise<unknown> {
    this.assertOpen()
    const { where } = this.#settings
    const bytes = bytesOf(command)
    this.#bytes += bytes
    const timeout = this.#settings.timeout + extraTime(this.#bytes)
    const deadline = performance.now() + timeout
    const call: Call = { ...options, command, deadline, underWay: false, over: false }
    const { promise: unanswered, reject } = Promise.withResolvers<never>()
    // An open store alone keeps no process alive; a call that waits for an answer does, by this timer.
    const timer = setTimeout(() => {
      this.#overdue(call)
      reject(toMillpondError(new Error('Connection is closed.'), `${where}: no answer in ${timeout} ms`))
    }, timeout)
    const answer = Promise.race([this.#answer(call), unanswered])
    this.#underWay.add(answer)
    try {
      return await answer
    } finally {
      call.over = true
      this.#bytes -= bytes
      clearTimeout(timer)
      this.#underWay.delete(answer)
    }
  }

  async #answer(call: Call): Promise<unknown> {
    let lost = 0
    while (!call.over) {
      try {
        return await this.#send(call)
      } catch (error) {
        call.underWay = false
        if (isNoScript(error) && call.text !== undefined && call.command[0] === 'evalsha') {
          call.command.splice(0, 2, 'eval', call.text)
          continue
        }
        // A pipeline whose WAIT succeeded is not redirected by the client, which would go on with what it knew before a failover.
        if (isMoved(error) && 'refreshSlotsCache' in this.client) this.client.refreshSlotsCache()
        const isLost = isPassing(error) && !isUndone(error)
        if (isLost && call.againAt !== undefined) call.command[call.againAt] = '1'
        if (isLost && (await isTooLong(call.command, ++lost, this.client, this.#settings))) {
          throw tooLong(this.#settings.where)
        }
        const isLate = performance.now() + RETRY_PAUSE > call.deadline
        if (isLate && isPassing(error)) this.#overdue(call)
        if (!isPassing(error) || isLate || this.#closed) {
          throw toMillpondError(error, this.#settings.where)
        }
        reconnectIfEnded(this.client)
        await pause(RETRY_PAUSE)
      }
    }
    return undefined
  }

  #send(call: Call): Promise<unknown> {
    this.#database.check()
    if (this.#settings.wait > 0) return this.#replicated.add(call, 0)
    call.underWay = true
    return this.client.callBuffer(...call.command)
  }

  /** One outcome per call; none for those that are over. */
  async #sendAndWait(calls: readonly Call[]): Promise<unknown[]> {
    const { wait, where } = this.#settings
    const live = calls.filter(({ over }) => !over)
    if (live.length === 0) return calls.map(() => undefined)
    const left = Math.min(...live.map(({ deadline }) => deadline)) - performance.now()
    const pipeline = this.client.pipeline()
    for (const call of live) {
      call.underWay = true
      pipeline.callBuffer(...call.command)
    }
    // Less than is left, so that the error can say how many replicas there were. A server looks ten times a second whose time is over.
    pipeline.wait(wait, Math.max(1, Math.ceil(left * 0.8) - 100))
    const replies = (await pipeline.exec()) ?? []
    const [waitError, replicas] = replies[live.length] ?? [new Error('Connection is closed.'), 0]
    const message = `only ${replicas} of ${wait} replicas confirmed it in time; it is stored on ${where}, and can be repeated safely`
    const shortfall = Number(replicas) < wait ? new MillpondError('StoreUnavailable', message) : null
    const outcomes = new Map(live.map((call, at) => [call, replies[at]]))
    return calls.map((call) => {
      const [error, reply] = outcomes.get(call) ?? [new Error('Connection is closed.'), null]
      return error ?? waitError ?? shortfall ?? reply
    })
  }

  /** Replaces the connection, at most once in the time that a new one has for its first answer. */
  #overdue({ underWay }: Call): void {
    const now = performance.now()
    // A call that cannot be sent waits for a connection that does not get ready.
    if (!underWay && this.client.status === 'ready' && this.#database.chosen) return
    if (now - this.#replacedAt < this.#settings.timeout / 2) return
    this.#replacedAt = now
    replaceConnection(this.client)
  }
}
