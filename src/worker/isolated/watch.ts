/** The main thread's end of the watchdog. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Limits } from './messages.ts'
import { watchdogCode } from './watchdog-code.ts'

export interface Watch {
  shared: SharedArrayBuffer
  limits: Limits
  token: string
  /** The process id of the worker's process. */
  parent: number
}

/** The place in the shared memory that counts begins and ends of calls; loading the module is the first one. */
export const CALLS = 0
/** The count while the module loads, which takes CPU time that is not the handler's. */
export const LOADING = 1

export class Watchdog {
  readonly #calls: Int32Array<SharedArrayBuffer>

  private constructor(shared: SharedArrayBuffer) {
    this.#calls = new Int32Array(shared)
  }

  /** Resolves when it runs. */
  static async start(limits: Limits, token: string): Promise<Watchdog> {
    const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    const workerData: Watch = { shared, limits, token, parent: process.ppid }
    // Without the flags of the process: a loader or a preloaded module is for the handler.
    const thread = new Worker(watchdogCode(), { workerData, execArgv: [], name: 'millpond-watchdog' })
    await once(thread, 'message')
    thread.unref()
    return new Watchdog(shared)
  }

  /** A call begins, or ends. */
  advance(): void {
    Atomics.add(this.#calls, CALLS, 1)
    Atomics.notify(this.#calls, CALLS)
  }
}
