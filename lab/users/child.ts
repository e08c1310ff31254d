import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isReady, isTally, type Tally } from './messages.ts'
import type { Places } from './service.ts'
import type { VariantName } from './variants.ts'

/** A process of a run. It ends with us at the latest, since the channel does. */
export class Child {
  readonly #process: ChildProcess
  readonly port: number

  private constructor(started: ChildProcess, port: number) {
    this.#process = started
    this.port = port
  }

  static async start(script: 'server' | 'consumer', name: VariantName, places: Places): Promise<Child> {
    const profile = process.env.BENCH_PROF
    const execArgv = [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=MillpondWarning', // that Redis keeps nothing on the disk is said in the head of the report
      ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
    ]
    const file = fileURLToPath(new URL(`${script}.ts`, import.meta.url))
    const child = fork(file, [name, places.postgres, places.redis], { execArgv })
    const message = await answer(child, script)
    if (!isReady(message)) throw new Error(`the ${script} of ${name} says ${JSON.stringify(message)}`)
    return new Child(child, message.port)
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** What a server has accepted so far. */
  async tally(): Promise<Tally> {
    this.#process.send('tally')
    const message = await answer(this.#process, 'server')
    if (!isTally(message)) throw new Error(`the server says ${JSON.stringify(message)}`)
    return { ...message }
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.disconnect()
    await gone
  }
}

async function answer(child: ChildProcess, script: string): Promise<unknown> {
  const ended = new AbortController()
  try {
    return await Promise.race([
      once(child, 'message', { signal: ended.signal }).then(([message]) => message),
      once(child, 'exit', { signal: ended.signal }).then(([code, signal]) => {
        throw new Error(`the ${script} ended by itself (${signal ?? `exit code ${code}`})`)
      }),
    ])
  } finally {
    ended.abort()
  }
}
