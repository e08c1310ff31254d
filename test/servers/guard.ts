/** This process's end of the line to its guard; there is one guard, started when the first server is. */

import { type ChildProcess, fork } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Account } from './account.ts'
import { type Ask, isNotice, type Launch, type Order } from './guard-messages.ts'

export interface Running {
  readonly id: number
  readonly pid: number
  /** How it ended; undefined: it has not. */
  readonly how: string | undefined
  readonly ended: Promise<void>
}

interface Waiter {
  resolve(value: string | number | undefined): void
  reject(error: Error): void
}

class Started implements Running {
  readonly id: number
  pid = 0
  how: string | undefined
  readonly ended: Promise<void>
  readonly #end: () => void
  readonly #drop: NodeJS.Signals

  constructor(id: number, drop: NodeJS.Signals) {
    this.id = id
    this.#drop = drop
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#end = resolve
  }

  /** Nobody looks after it any more. */
  abandon(why: string): void {
    this.end(why)
    if (this.pid === 0) return
    try {
      process.kill(this.pid, this.#drop)
      process.kill(this.pid, 'SIGCONT')
    } catch {
      // It is gone already.
    }
  }

  end(how: string): void {
    this.how = how
    this.#end()
  }
}

/** Over all guards, so that a new one never takes another's server for its own. */
let launched = 0

let present: Guard | undefined

/** The guard of this process. */
export function guard(): Guard {
  present ??= new Guard(() => {
    present = undefined
  })
  return present
}

export class Guard {
  readonly #process: ChildProcess
  readonly #waiters = new Map<number, Waiter>()
  readonly #running = new Map<number, Started>()
  readonly #folders = new Set<string>()
  #asked = 0
  #holds = 0

  constructor(gone: () => void) {
    this.#process = fork(fileURLToPath(new URL('guard-process.ts', import.meta.url)), {
      // A group of its own: Ctrl-C in the terminal is for us alone, and we stop the servers in good order.
      detached: true,
      execArgv: ['--no-warnings'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#process.on('message', (message) => this.#hear(message))
    const leave = (why: string) => {
      gone()
      for (const { reject } of this.#waiters.values()) reject(new Error(why))
      this.#waiters.clear()
      for (const started of this.#running.values()) started.abandon(why)
      this.#running.clear()
      for (const folder of this.#folders) void rm(folder, { recursive: true, force: true, maxRetries: 20 })
      this.#folders.clear()
    }
    this.#process.once('error', (error) => leave(`the guard of the servers cannot be started: ${error.message}`))
    this.#process.once('exit', () => leave('the guard of the servers was killed, and they after it'))
    // Idle servers keep no process alive; only what is being waited for does.
    this.#process.unref()
    this.#process.channel?.unref()
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** A fresh folder, removed when this process ends if not before. */
  async folder(account?: Account): Promise<string> {
    const folder = String(await this.#ask({ kind: 'folder', account }))
    this.#folders.add(folder)
    return folder
  }

  async remove(folder: string): Promise<void> {
    this.#folders.delete(folder)
    await this.#ask({ kind: 'remove', folder })
  }

  async start(launch: Omit<Launch, 'id'>): Promise<Running> {
    const started = new Started(++launched, launch.drop)
    this.#running.set(started.id, started)
    try {
      started.pid = Number(await this.#ask({ kind: 'start', launch: { ...launch, id: started.id } }))
    } catch (error) {
      this.#running.delete(started.id)
      throw error
    }
    return started
  }

  async signal({ id }: Running, signal: NodeJS.Signals): Promise<void> {
    await this.#ask({ kind: 'signal', id, signal })
  }

  /** Ends it at once; resolves when it is gone. */
  async drop({ id }: Running): Promise<void> {
    await this.#ask({ kind: 'drop', id })
  }

  /** Keeps this process alive while the promise is pending. */
  async hold<T>(promise: Promise<T>): Promise<T> {
    if (this.#holds++ === 0) this.#process.channel?.ref()
    try {
      return await promise
    } finally {
      if (--this.#holds === 0) this.#process.channel?.unref()
    }
  }

  #ask(order: Order): Promise<string | number | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<string | number | undefined>()
    const message: Ask = { ask: ++this.#asked, order }
    this.#waiters.set(message.ask, { resolve, reject })
    this.#process.send(message, (error) => {
      if (error) reject(error)
    })
    return this.hold(promise)
  }

  #hear(message: unknown): void {
    if (!isNotice(message)) return
    if ('ended' in message) {
      this.#running.get(message.ended)?.end(message.how)
      this.#running.delete(message.ended)
      return
    }
    const waiter = this.#waiters.get(message.answer)
    this.#waiters.delete(message.answer)
    if ('error' in message) waiter?.reject(new Error(message.error))
    else waiter?.resolve(message.value)
  }
}
