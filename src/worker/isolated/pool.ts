/**
 * The processes of one worker's handler: as many as are needed at once, up to the worker's concurrency. They are kept for the next calls.
 *
 *   call ──► an idle process, else a fresh one, else it waits for the next that is free
 *     └─ all jobs of the call are over before the handler is: it has a second to end, then its process is killed
 *
 * A process that a call was too much for is gone, and so is one that is worn. The next call that finds no other starts a fresh one.
 */
import { MillpondError } from '../../values/errors/errors.ts'
import { NotStarted } from '../outcome.ts'
import { HandlerProcess, type HandlerTerms, type Reports } from './handler-process.ts'
import type { AnswerMessage, JobMessage } from './messages.ts'

/** Milliseconds that a handler may go on when all its jobs are over. */
const GRACE = 1000
/** Milliseconds until a further process is started after one that could not load the module, while others have it. */
const LOAD_PAUSE = 1000

/** A call of the handler. */
export interface Call extends Reports {
  jobs: readonly JobMessage[]
  /** Of each job: aborted when it is over before the handler is. */
  signals: readonly AbortSignal[]
}

export class ProcessPool {
  readonly #terms: HandlerTerms
  readonly #size: number
  readonly #all = new Set<HandlerProcess>()
  /** The one that was used last is taken first. */
  readonly #idle: HandlerProcess[] = []
  /** Called when a process is free, or there is room for a fresh one; the longest waiting first. */
  readonly #waiting: (() => void)[] = []
  /** Whether the module was loaded when a process was started last. */
  #isLoaded = false
  /** By `performance.now()`. */
  #failedAt = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined
  #first: HandlerProcess | undefined
  #isClosed = false

  constructor(terms: HandlerTerms, size: number) {
    this.#terms = terms
    this.#size = size
  }

  /** Settles when the module is loaded in a process; undefined: it is known to load. @throws HandlerNotLoaded */
  ready(): Promise<void> | undefined {
    if (this.#isLoaded || this.#hasLoaded()) return undefined
    this.#loading ??= this.#loadFirst().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  /** @throws what `HandlerProcess.run` does. NotStarted: no process has the module */
  async run({ jobs, signals, ...reports }: Call): Promise<readonly AnswerMessage[]> {
    const process = await this.#take(signals)
    let grace: NodeJS.Timeout | undefined
    const abort = (signal: AbortSignal, at: number) => {
      process.abort(at, signal.reason)
      if (signals.every(({ aborted }) => aborted)) grace ??= setTimeout(() => void process.kill(), GRACE)
    }
    const undo = signals.map((signal, at) => {
      const listener = () => abort(signal, at)
      signal.addEventListener('abort', listener)
      return () => signal.removeEventListener('abort', listener)
    })
    try {
      const answers = process.run(jobs, reports)
      for (const [at, signal] of signals.entries()) if (signal.aborted) abort(signal, at)
      return await answers
    } finally {
      clearTimeout(grace)
      for (const each of undo) each()
      this.#free(process)
    }
  }

  /** No job will come any more: a first process that is still loading is not waited for. */
  closing(): void {
    this.#isClosed = true
    void this.#first?.kill()
  }

  /** Resolves when no process is left. */
  async close(): Promise<void> {
    this.closing()
    await Promise.all([...this.#all].map((process) => process.stop()))
  }

  async #loadFirst(): Promise<void> {
    if (this.#isClosed) throw new MillpondError('Closed', 'the worker is closed')
    if (this.#all.size >= this.#size) await Promise.race([...this.#all].map(({ ended }) => ended))
    this.#first = this.#start()
    try {
      await this.#load(this.#first)
      this.#free(this.#first)
    } finally {
      this.#first = undefined
    }
  }

  /** @throws the reason of a signal, if all are aborted while the call waits */
  async #take(signals: readonly AbortSignal[]): Promise<HandlerProcess> {
    for (;;) {
      while (this.#idle.length === 0 && !this.#mayStart()) {
        await new Promise<void>((resolve) => this.#waiting.push(resolve))
      }
      const last = signals.at(-1)
      if (last !== undefined && signals.every(({ aborted }) => aborted)) {
        this.#next()
        throw last.reason
      }
      for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
        if (!idle.isOver && !idle.isWorn) return idle
      }
      try {
        const fresh = this.#start()
        await this.#load(fresh)
        return fresh
      } catch (error) {
        // Another process has the module: the call waits for it.
        if (!this.#hasLoaded()) throw new NotStarted(error)
      }
    }
  }

  #hasLoaded(): boolean {
    return [...this.#all].some(({ isLoaded }) => isLoaded)
  }

  #mayStart(): boolean {
    if (this.#all.size >= this.#size) return false
    return performance.now() > this.#failedAt + LOAD_PAUSE || !this.#hasLoaded()
  }

  /** @throws HandlerNotLoaded */
  #start(): HandlerProcess {
    const process = HandlerProcess.start(this.#terms)
    this.#all.add(process)
    void process.ended.then(() => {
      this.#all.delete(process)
      const at = this.#idle.indexOf(process)
      if (at >= 0) this.#idle.splice(at, 1)
      this.#next()
    })
    return process
  }

  /** @throws HandlerNotLoaded */
  async #load(process: HandlerProcess): Promise<void> {
    try {
      await process.loaded()
      this.#isLoaded = true
    } catch (error) {
      this.#isLoaded = false
      this.#failedAt = performance.now()
      void process.kill()
      throw error
    }
  }

  #free(process: HandlerProcess): void {
    if (process.isOver) return
    if (process.isWorn) void process.stop()
    else {
      this.#idle.push(process)
      this.#next()
    }
  }

  #next(): void {
    this.#waiting.shift()?.()
  }
}
