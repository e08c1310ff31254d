/** The main thread's end: sends calls to the thread that owns the connection, and settles them when it answers. */
import { Worker } from 'node:worker_threads'
import type { Bell, OfQueue } from '../../../store.ts'
import { MillpondError } from '../../../values/errors/errors.ts'
import type { Completion, HoldOutcome } from '../../../values/jobs/records.ts'
import { fromWire } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { packCompletions } from '../wire.ts'
import type { Answers, Call, Inputs, Outputs, RequestOf } from './requests.ts'
import { threadCode } from './thread-code.ts'

interface Pending {
  resolve(output: unknown): void
  reject(error: MillpondError): void
}

/**
 * Flags of the main thread, such as --input-type, can keep a thread from starting; ours needs none but this, so that Node
 * does not warn that its SQLite is new. Deno knows no such flag, and starts no thread with it.
 */
const FLAGS = ['--disable-warning=ExperimentalWarning'].filter((flag) => process.allowedNodeEnvironmentFlags.has(flag))

export class ThreadClient {
  readonly path: string
  readonly #worker = new Worker(threadCode(), { execArgv: FLAGS, name: 'millpond-sqlite' })
  readonly #clock: (() => number) | undefined
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<(bell: Bell) => void>()
  #outgoing: { seq: number }[] = []
  #seq = 0
  #closed: Promise<void> | null = null
  #failure: MillpondError | null = null

  private constructor(path: string, clock: (() => number) | undefined) {
    this.path = path
    this.#clock = clock
    this.#worker.on('message', (message: Answers) => this.#receive(message))
    this.#worker.on('error', (error) => this.#die(error))
    this.#worker.on('exit', (code) => this.#die(new Error(`it exited with code ${code}`)))
    // An open store alone keeps no process alive; calls that wait for an answer do.
    this.#worker.unref()
  }

  static async open(settings: Settings, clock: (() => number) | undefined): Promise<ThreadClient> {
    const client = new ThreadClient(settings.path, clock)
    await client.call('open', settings)
    return client
  }

  now(): number {
    return this.#clock?.() ?? Date.now()
  }

  /** @throws Closed, StoreFailed */
  assertOpen(): void {
    if (this.#closed !== null)
      throw new MillpondError('Closed', `the store ${this.path} is closed; open a new one to go on`)
    if (this.#failure !== null) throw this.#failure
  }

  /** @param transaction the number of the handler's transaction that it belongs to */
  async call<C extends Call>(op: C, input: Inputs[C], transaction?: number): Promise<Outputs[C]> {
    this.assertOpen()
    return new Promise<Outputs[C]>((resolve, reject) => {
      if (this.#pending.size === 0) this.#worker.ref()
      this.#pending.set(++this.#seq, { resolve, reject })
      this.#post<C>({ seq: this.#seq, op, input, now: this.#clock?.() ?? null, transaction })
    })
  }

  /** @param transaction completes them in this transaction and commits it */
  async complete(input: OfQueue<Completion>, transaction?: number): Promise<HoldOutcome[]> {
    const stale = new Set(await this.call('complete', packCompletions(input), transaction))
    return input.items.map((_, at) => (stale.has(at) ? 'stale' : 'ok'))
  }

  /** Calls of the same tick go in one message, and so into one commit. */
  #post<C extends Call>(request: RequestOf<C>): void {
    if (this.#outgoing.length === 0) queueMicrotask(() => this.#flush())
    this.#outgoing.push(request)
  }

  #flush(): void {
    const requests = this.#outgoing
    this.#outgoing = []
    try {
      this.#worker.postMessage(requests)
    } catch (cause) {
      const message = `a call could not be sent to the thread of ${this.path}`
      const error = new MillpondError('StoreFailed', message, { cause })
      for (const { seq } of requests) this.#take(seq)?.reject(error)
    }
  }

  #receive({ answers, bells }: Answers): void {
    for (const answer of answers) {
      const pending = this.#take(answer.seq)
      if ('error' in answer) pending?.reject(fromWire(answer.error))
      else pending?.resolve(answer.output)
    }
    for (const bell of bells) for (const listener of this.#listeners) listener(bell)
  }

  #take(seq: number): Pending | undefined {
    const pending = this.#pending.get(seq)
    this.#pending.delete(seq)
    if (this.#pending.size === 0) this.#worker.unref()
    return pending
  }

  #die(cause: unknown): void {
    this.#failure ??= new MillpondError(
      'StoreFailed',
      `the thread for ${this.path} ended unexpectedly; open the store anew. Calls without an answer may have taken effect`,
      { cause },
    )
    for (const seq of [...this.#pending.keys()]) this.#take(seq)?.reject(this.#failure)
  }

  listen(listener: (bell: Bell) => void): () => void {
    this.assertOpen()
    // One of its own for each call, as the same function may be handed in twice.
    const own = (bell: Bell): void => listener(bell)
    const tell = (input: boolean): void => this.#post<'listen'>({ seq: 0, op: 'listen', input, now: null })
    if (this.#listeners.size === 0) tell(true)
    this.#listeners.add(own)
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0 && this.#closed === null) tell(false)
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#listeners.clear()
    if (this.#failure !== null) return
    const exited = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()))
    if (!(await this.call('close', null))) return
    this.#worker.ref()
    await exited
  }
}
