/**
 * Calls scripts on the server. Calls of the same turn go out together, those of one hash tag in one round trip.
 *
 *   waiting for the end of the turn ──► sent ──► answered
 *                                        │ ▲
 *        connection cut, failover, …     ▼ │ a moment later
 *                                      again ──deadline──► StoreUnavailable
 *
 * A call whose answer is missing is sent again until its deadline, and then rejected: it may have taken effect all the same. The
 * operations are made for that: a repeated push finds its job there, and a repeated ending is told so (`again`).
 */
import type { Cluster, Redis } from 'ioredis'
import { MillpondError } from '../../errors.ts'
import { closed, isMoved, isNoScript, isPassing, isUndone, toMillpondError } from './errors.ts'
import type { Partition } from './partition.ts'
import { type Script, type ScriptName, scriptOf } from './scripts.ts'

export type Client = Redis | Cluster

export interface LinkSettings {
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** Replicas that must have what was written before it is acknowledged. */
  wait: number
  /** For messages; without the password. */
  where: string
}

interface Call {
  script: Script
  partition: Partition
  input: Buffer
  /** Where `again` stands in the input, as one byte; 0: nowhere. */
  againAt: number
  /** Whether the answer waits for replicas. */
  safe: boolean
  /** The server does not know the script. */
  whole: boolean
  deadline: number
  settled: boolean
  inDoubt: (() => void) | undefined
  resolve: (reply: Buffer) => void
  reject: (error: MillpondError) => void
}

export interface CallOptions {
  againAt?: number
  safe?: boolean
  /** Called when the answer is missing and the call is sent again: it may have taken effect before. */
  inDoubt?: () => void
}

const FALSE = 0xc2
const TRUE = 0xc3
/** Milliseconds before a call that could not be sent is tried again. */
const PAUSE = 25

export class Link {
  readonly client: Client
  readonly #settings: LinkSettings
  #outgoing: Call[] = []
  /** In the order of their deadlines. */
  readonly #pending = new Set<Call>()
  #timer: NodeJS.Timeout | undefined
  /** Other commands under way. */
  #commands = 0
  #closed = false
  #idle: (() => void)[] = []

  constructor(client: Client, settings: LinkSettings) {
    this.client = client
    this.#settings = settings
  }

  assertOpen(): void {
    if (this.#closed) throw closed()
  }

  /** @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed */
  call(name: ScriptName, partition: Partition, input: Buffer, options: CallOptions = {}): Promise<Buffer> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const { againAt = 0, safe = false, inDoubt } = options
      const call: Call = {
        script: scriptOf(name),
        partition,
        input,
        againAt,
        safe: safe && this.#settings.wait > 0,
        whole: false,
        deadline: performance.now() + this.#settings.timeout,
        settled: false,
        inDoubt,
        resolve,
        reject,
      }
      this.#pending.add(call)
      if (this.#timer === undefined) this.#timer = setTimeout(this.#late, this.#settings.timeout)
      else if (this.#pending.size === 1) this.#timer.ref()
      this.#plan(call)
    })
  }

  /** Any other command, within the same time. */
  async command<T>(send: (client: Client) => Promise<T>): Promise<T> {
    this.assertOpen()
    this.#commands++
    try {
      return await this.#tried(send)
    } finally {
      this.#commands--
      this.#quiet()
    }
  }

  async #tried<T>(send: (client: Client) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#settings.timeout
    for (;;) {
      try {
        return await within(deadline - performance.now(), send(this.client), this.#settings.where)
      } catch (error) {
        if (!isPassing(error) || performance.now() + PAUSE > deadline || this.#closed) {
          throw toMillpondError(error, this.#settings.where)
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE))
      }
    }
  }

  /** Refuses further calls; resolves once those under way are settled. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#pending.size > 0 || this.#commands > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
    clearTimeout(this.#timer)
  }

  #quiet(): void {
    if (this.#pending.size > 0 || this.#commands > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #plan(call: Call): void {
    if (this.#outgoing.length === 0) queueMicrotask(() => this.#flush())
    this.#outgoing.push(call)
  }

  #flush(): void {
    const calls = this.#outgoing
    this.#outgoing = []
    const [first] = calls
    if (first === undefined) return
    if (calls.length === 1 && !first.safe) {
      this.#sendOne(first)
      return
    }
    // A pipeline of a cluster goes to one node.
    if (!this.client.isCluster) this.#sendMany(calls)
    else for (const group of byTag(calls)) this.#sendMany(group)
  }

  #sendOne(call: Call): void {
    const { script, partition, input } = call
    const keys = partition.keys(script.name)
    const sent = call.whole
      ? this.client.callBuffer('eval', script.text, keys.length, ...keys, input)
      : this.client.callBuffer('evalsha', script.sha, keys.length, ...keys, input)
    sent.then(
      (reply) => this.#answered(call, reply),
      (error: unknown) => this.#failed(call, error),
    )
  }

  #sendMany(calls: readonly Call[]): void {
    if (calls.length === 1 && calls[0]?.safe === false) {
      this.#sendOne(calls[0])
      return
    }
    const pipeline = this.client.pipeline()
    for (const { script, partition, input, whole } of calls) {
      const keys = partition.keys(script.name)
      if (whole) pipeline.callBuffer('eval', script.text, keys.length, ...keys, input)
      else pipeline.callBuffer('evalsha', script.sha, keys.length, ...keys, input)
    }
    const safe = calls.some((call) => call.safe)
    // Less than the deadline, so that it is the count of replicas that is told.
    if (safe) pipeline.wait(this.#settings.wait, Math.ceil(this.#settings.timeout * 0.8))
    pipeline.exec().then(
      (replies) => {
        const replicas = safe ? replies?.[calls.length] : undefined
        for (const [index, call] of calls.entries()) {
          const [error, reply] = replies?.[index] ?? [new Error('Connection is closed.'), null]
          if (error !== null) this.#failed(call, error)
          else if (!call.safe) this.#answered(call, reply)
          else if (replicas === undefined || replicas[0] !== null) this.#failed(call, replicas?.[0])
          else this.#replicated(call, reply, Number(replicas[1]))
        }
      },
      (error: unknown) => {
        for (const call of calls) this.#failed(call, error)
      },
    )
  }

  #replicated(call: Call, reply: unknown, replicas: number): void {
    const { wait, where } = this.#settings
    if (replicas >= wait) this.#answered(call, reply)
    else {
      const message = `only ${replicas} of ${wait} replicas confirmed a ${call.script.name} in time; it is stored on ${where}, and can be repeated safely`
      this.#reject(call, new MillpondError('StoreUnavailable', message))
    }
  }

  #answered(call: Call, reply: unknown): void {
    if (!this.#settle(call)) return
    if (Buffer.isBuffer(reply)) call.resolve(reply)
    else call.reject(toMillpondError(new Error(`an answer of type ${typeof reply}`), this.#settings.where))
  }

  #failed(call: Call, error: unknown): void {
    if (call.settled) return
    if (isNoScript(error) && !call.whole) {
      call.whole = true
      this.#plan(call)
      return
    }
    if (!isPassing(error) || performance.now() + PAUSE > call.deadline) {
      this.#reject(call, toMillpondError(error, this.#settings.where))
      return
    }
    // A pipeline whose WAIT succeeded is not redirected by the client, which would go on with what it knew before a failover.
    if (isMoved(error) && 'refreshSlotsCache' in this.client) this.client.refreshSlotsCache()
    if (!isUndone(error)) call.inDoubt?.()
    if (call.againAt > 0 && call.input[call.againAt] === FALSE) call.input[call.againAt] = TRUE
    setTimeout(() => {
      if (!call.settled) this.#plan(call)
    }, PAUSE)
  }

  #reject(call: Call, error: MillpondError): void {
    if (this.#settle(call)) call.reject(error)
  }

  #settle(call: Call): boolean {
    if (call.settled) return false
    call.settled = true
    this.#pending.delete(call)
    // An open store alone keeps no process alive; a call that waits for an answer does, by this timer.
    if (this.#pending.size === 0) this.#timer?.unref()
    this.#quiet()
    return true
  }

  /** One timer for all: every call has the same time, so the first of them is the next. */
  readonly #late = (): void => {
    this.#timer = undefined
    const now = performance.now()
    for (const call of this.#pending) {
      if (call.deadline > now + 1) {
        this.#timer = setTimeout(this.#late, call.deadline - now)
        return
      }
      this.#reject(
        call,
        toMillpondError(
          new Error('Connection is closed.'),
          `${this.#settings.where}: no answer in ${this.#settings.timeout} ms`,
        ),
      )
    }
  }
}

function byTag(calls: readonly Call[]): Call[][] {
  const groups = new Map<string, Call[]>()
  for (const call of calls) {
    const group = groups.get(call.partition.tag)
    if (group === undefined) groups.set(call.partition.tag, [call])
    else group.push(call)
  }
  return [...groups.values()]
}

/** Milliseconds. */
async function within<T>(ms: number, promise: Promise<T>, where: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Connection is closed. (${where} did not answer)`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
