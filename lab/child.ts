/** A process of a run, such as a server: it says which port it listens on, and ends with us at the latest, since the channel does. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

export class Child {
  readonly #process: ChildProcess
  readonly #name: string
  /** What it said that it listens on; 0 if on none. */
  readonly port: number

  private constructor(started: ChildProcess, name: string, port: number) {
    this.#process = started
    this.#name = name
    this.port = port
  }

  /** Resolves when it has sent its `{ port }`. `BENCH_PROF` names a folder for its CPU profile. */
  static async start(script: URL, args: readonly string[] = []): Promise<Child> {
    const profile = process.env.BENCH_PROF
    const execArgv = [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=MillpondWarning', // that Redis keeps nothing on the disk is said in the head of the report
      ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
    ]
    const file = fileURLToPath(script)
    const name = [basename(file), ...args].join(' ')
    const child = fork(file, args, { execArgv })
    const message = await answer(child, name)
    if (!isReady(message)) throw new Error(`${name} says ${JSON.stringify(message)}`)
    return new Child(child, name, message.port)
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Has it tell something of itself: it answers whatever message it gets. */
  async tell<Told>(isTold: (message: unknown) => message is Told): Promise<Told> {
    this.#process.send('tell')
    const message = await answer(this.#process, this.#name)
    if (!isTold(message)) throw new Error(`${this.#name} says ${JSON.stringify(message)}`)
    return message
  }

  send(message: number): void {
    this.#process.send(message)
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.disconnect()
    await gone
  }
}

function isReady(message: unknown): message is { port: number } {
  return typeof message === 'object' && message !== null && 'port' in message && typeof message.port === 'number'
}

async function answer(child: ChildProcess, name: string): Promise<unknown> {
  const ended = new AbortController()
  try {
    return await Promise.race([
      once(child, 'message', { signal: ended.signal }).then(([message]) => message),
      once(child, 'exit', { signal: ended.signal }).then(([code, signal]) => {
        throw new Error(`${name} ended by itself (${signal ?? `exit code ${code}`})`)
      }),
    ])
  } finally {
    ended.abort()
  }
}
