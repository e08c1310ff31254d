/**
 * Calls scripts on the server. Calls of the same turn go out together, those of one hash tag in one round trip.
 *
 *   waiting for the end of the turn ──► sent ──► answered
 *                                        │ ▲
 *        connection cut, failover, …     ▼ │ a moment later
 *                                      again ──deadline──► StoreUnavailable
 *
 * A call whose answer is missing is sent again until its deadline, and then rejected: it may have taken effect all the same. The
 * operations are made for that: a repeated push finds its job there, and a repeated ending is told that it is one.
 *
 * A connection that owes an answer at a deadline is given up for a new one: nothing else tells that a server has stopped without a word.
 */
import { MillpondError } from '../../errors.ts'
import { closed, isMoved, isNoScript, isPassing, isUndone, toMillpondError } from './errors.ts'
import { giveUp } from './reconnect.ts'
import { type Script, type ScriptName, scriptOf } from './scripts.ts'
import type { Client } from './settings.ts'

export type Arg = string | Buffer | number

export interface LinkSettings {
  /** Milliseconds until a call without an answer is rejected. */
  timeout: number
  /** Replicas that must have what was written before a call is answered; 0: none. */
  wait: number
  /** For messages; without the password. */
  where: string
}

/** Where a script is called: its keys, and the hash tag that they share. */
export interface Target {
  tag: string
  keys: readonly string[]
}

export interface CallOptions {
  /** The second argument tells whether the call was sent before. */
  repeatable?: boolean
  /** Called when an answer went missing and the call is sent again: it may have taken effect before. */
  inDoubt?: () => void
  /** Called with an answer that came after the call was rejected. */
  late?: (reply: readonly unknown[]) => void
}

interface Call extends CallOptions {
  script: Script
  target: Target
  args: Arg[]
  /** The server does not know the script. */
  whole: boolean
  /** Sent, and neither answered nor failed. */
  underWay: boolean
  deadline: number
  settled: boolean
  resolve: (reply: readonly unknown[]) => void
  reject: (error: MillpondError) => void
}

/** Milliseconds before a call that could not be sent is tried again. */
const PAUSE = 25
/** Milliseconds that calls under way still have when the link closes. */
const LAST_CALLS = 1000

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
  #gaveUpAt = Number.NEGATIVE_INFINITY
  /** Hash tags of calls that wait for replicas: no others go there meanwhile. One stands for all where there is one server. */
  readonly #waiting = new Set<string>()

  constructor(client: Client, settings: LinkSettings) {
    this.client = client
    this.#settings = settings
  }

  get closed(): boolean {
    return this.#closed
  }

  assertOpen(): void {
    if (this.#closed) throw closed()
  }

  /** @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed */
  call(name: ScriptName, target: Target, args: Arg[], options: CallOptions = {}): Promise<readonly unknown[]> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const { timeout } = this.#settings
      const deadline = performance.now() + timeout
      const script = scriptOf(name)
      const call: Call = {
        script,
        target,
        args,
        whole: false,
        underWay: false,
        deadline,
        settled: false,
        resolve,
        reject,
        ...options,
      }
      this.#pending.add(call)
      if (this.#timer === undefined) this.#timer = setTimeout(this.#late, timeout)
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
    const { timeout, where } = this.#settings
    const deadline = performance.now() + timeout
    for (;;) {
      try {
        return await within(deadline - performance.now(), send(this.client), () => {
          this.#giveUp()
          return new Error(`Connection is closed. (${where} did not answer)`)
        })
      } catch (error) {
        if (!isPassing(error) || performance.now() + PAUSE > deadline || this.#closed) {
          throw toMillpondError(error, where)
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE))
      }
    }
  }

  /** Refuses further calls; resolves once those under way are settled, which have a second for it. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#pending.size > 0 || this.#commands > 0) {
      const idle = new Promise<void>((resolve) => this.#idle.push(resolve))
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, LAST_CALLS)
      })
      await Promise.race([idle, late])
      clearTimeout(timer)
      for (const call of this.#pending) this.#reject(call, this.#unanswered())
    }
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
    const calls = this.#outgoing.filter(({ settled }) => !settled)
    this.#outgoing = []
    if (this.#settings.wait > 0) {
      for (const [line, some] of grouped(calls, ({ target }) => this.#lineOf(target))) this.#sendSafely(line, some)
    } else if (calls.length === 1 || this.client.isCluster) {
      // The client sends what one turn brings in one write to each node.
      for (const call of calls) this.#sendOne(call)
    } else if (calls.length > 1) this.#sendMany(calls)
  }

  #sendOne(call: Call): void {
    const [name, ...args] = commandOf(call)
    call.underWay = true
    this.client.callBuffer(name, ...args).then(
      (reply) => this.#answered(call, reply),
      (error: unknown) => this.#failed(call, error),
    )
  }

  #sendMany(calls: readonly Call[]): void {
    const pipeline = this.#pipelineOf(calls)
    pipeline.exec().then(
      (replies) => this.#repliedTo(calls, replies, undefined),
      (error: unknown) => {
        for (const call of calls) this.#failed(call, error)
      },
    )
  }

  #pipelineOf(calls: readonly Call[]) {
    const pipeline = this.client.pipeline()
    for (const call of calls) {
      call.underWay = true
      const [name, ...args] = commandOf(call)
      pipeline.callBuffer(name, ...args)
    }
    return pipeline
  }

  #lineOf({ tag }: Target): string {
    return this.client.isCluster ? tag : ''
  }

  /** The connection stands still while the server waits for its replicas: what comes meanwhile goes together afterwards. */
  #sendSafely(line: string, calls: readonly Call[]): void {
    if (this.#waiting.has(line)) {
      this.#outgoing.push(...calls)
      return
    }
    this.#waiting.add(line)
    const { wait } = this.#settings
    const left = Math.min(...calls.map(({ deadline }) => deadline)) - performance.now()
    const pipeline = this.#pipelineOf(calls)
    // Less than is left, so that it is the count of replicas that is told. A server looks ten times a second whose time is over.
    pipeline.wait(wait, Math.max(1, Math.ceil(left * 0.8) - 100))
    pipeline
      .exec()
      .then(
        (replies) => this.#repliedTo(calls, replies, replies?.[calls.length]),
        (error: unknown) => {
          for (const call of calls) this.#failed(call, error)
        },
      )
      .finally(() => {
        this.#waiting.delete(line)
        if (this.#outgoing.length > 0) queueMicrotask(() => this.#flush())
      })
  }

  #repliedTo(
    calls: readonly Call[],
    replies: readonly (readonly [Error | null, unknown])[] | null,
    replicas: readonly [Error | null, unknown] | undefined,
  ): void {
    for (const [index, call] of calls.entries()) {
      const [error, reply] = replies?.[index] ?? [new Error('Connection is closed.'), null]
      if (error !== null) this.#failed(call, error)
      else if (this.#settings.wait === 0) this.#answered(call, reply)
      else if (replicas === undefined || replicas[0] !== null) {
        this.#failed(call, replicas?.[0] ?? new Error('Connection is closed.'))
      } else this.#replicated(call, reply, Number(replicas[1]))
    }
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
    call.underWay = false
    if (!this.#settle(call)) {
      if (Array.isArray(reply)) call.late?.(reply)
    } else if (Array.isArray(reply)) call.resolve(reply)
    else call.reject(toMillpondError(new Error(`an answer of type ${typeof reply}`), this.#settings.where))
  }

  #failed(call: Call, error: unknown): void {
    call.underWay = false
    if (call.settled) return
    if (isNoScript(error) && !call.whole) {
      call.whole = true
      this.#plan(call)
      return
    }
    // A pipeline whose WAIT succeeded is not redirected by the client, which would go on with what it knew before a failover.
    if (isMoved(error) && 'refreshSlotsCache' in this.client) this.client.refreshSlotsCache()
    if (!isUndone(error) && isPassing(error)) {
      call.inDoubt?.()
      if (call.repeatable) call.args[1] = '1'
    }
    if (!isPassing(error) || performance.now() + PAUSE > call.deadline || this.#closed) {
      this.#reject(call, toMillpondError(error, this.#settings.where))
      return
    }
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
    let silent = false
    for (const call of this.#pending) {
      if (call.deadline > now + 1) {
        this.#timer = setTimeout(this.#late, call.deadline - now)
        break
      }
      silent ||= call.underWay
      this.#reject(call, this.#unanswered())
    }
    // One that cannot be sent either waits for a connection that does not get ready.
    if (silent || this.client.status !== 'ready') this.#giveUp()
  }

  #unanswered(): MillpondError {
    const { where, timeout } = this.#settings
    return toMillpondError(new Error('Connection is closed.'), `${where}: no answer in ${timeout} ms`)
  }

  /** At most once in the time that a new connection has for its first answer. */
  #giveUp(): void {
    const now = performance.now()
    if (now - this.#gaveUpAt < this.#settings.timeout / 2) return
    this.#gaveUpAt = now
    giveUp(this.client)
  }
}

function commandOf({ script, target, args, whole }: Call): [string, ...Arg[]] {
  const { keys } = target
  return whole
    ? ['eval', script.text, keys.length, ...keys, ...args]
    : ['evalsha', script.sha, keys.length, ...keys, ...args]
}

function grouped<T>(items: readonly T[], lineOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(lineOf(item))
    if (group === undefined) groups.set(lineOf(item), [item])
    else group.push(item)
  }
  return groups
}

/** Milliseconds. */
async function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
