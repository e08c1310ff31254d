/** A process of a run, such as a server. It says when it is ready, and ends with this process at the latest, since the channel closes. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

export class Child {
  readonly #process: ChildProcess
  readonly #name: string
  #isWanted = true
  /** The port that it listens on; 0 for none. */
  port = 0
  /** Rejects if it ends without `stop` or `kill`. */
  readonly ended: Promise<never>

  private constructor(started: ChildProcess, name: string) {
    this.#process = started
    this.#name = name
    const { promise, reject } = Promise.withResolvers<never>()
    this.ended = promise
    promise.catch(() => {})
    started.once('exit', (code, signal) => {
      if (this.#isWanted) reject(new Error(`${name} ended by itself (${signal ?? `exit code ${code}`})`))
    })
  }

  /**
   * Resolves when it has sent its `{ port }`. `BENCH_PROF` names a folder for its CPU profile.
   * @param hear gets every message, until `stop` or `kill`
   */
  static async start(script: URL, args: readonly string[] = [], hear?: (message: unknown) => void): Promise<Child> {
    const profile = process.env.BENCH_PROF
    const execArgv = [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=MillpondWarning', // that Redis keeps nothing on the disk is said in the head of the report
      ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
    ]
    const file = fileURLToPath(script)
    const child = new Child(fork(file, args, { execArgv }), [basename(file), ...args].join(' '))
    child.#process.on('message', (message) => {
      if (child.#isWanted) hear?.(message)
    })
    child.port = (await child.#answer(isReady)).port
    return child
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Asks it, and resolves to its answer. @param what more than one thing can be asked for, where it knows them */
  tell<Told>(isTold: (message: unknown) => message is Told, what = 'tell'): Promise<Told> {
    this.#process.send(what)
    return this.#answer(isTold)
  }

  send(message: number): void {
    this.#process.send(message)
  }

  stop(): Promise<void> {
    return this.#end(() => this.#process.disconnect())
  }

  /** SIGKILL: it gets no chance to finish, hand over or say goodbye. */
  kill(): Promise<void> {
    return this.#end(() => this.#process.kill('SIGKILL'))
  }

  async #end(end: () => void): Promise<void> {
    this.#isWanted = false
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    end()
    await gone
  }

  async #answer<Told>(isTold: (message: unknown) => message is Told): Promise<Told> {
    const [message]: unknown[] = await Promise.race([once(this.#process, 'message'), this.ended])
    if (!isTold(message)) throw new Error(`${this.#name} says ${JSON.stringify(message)}`)
    return message
  }
}

/** A guard for messages. Only children of this run write to the channel, so the names of the members are enough. */
export function holds<Told>(...names: (keyof Told & string)[]) {
  return (message: unknown): message is Told =>
    typeof message === 'object' && message !== null && names.every((name) => name in message)
}

const isReady = holds<{ port: number }>('port')
