/** A process of a variant, in whatever language: it says "ready" in a line of its own, and ends with this process at the latest. */
import { guard, type Running } from '../../../test/servers/guard.ts'
import { launch } from '../../../test/servers/process.ts'

export interface Command {
  name: string
  command: string
  args: readonly string[]
  environment?: Record<string, string>
  /** What it writes when it is ready; "ready" unless given. */
  ready?: RegExp
}

export class Program {
  readonly #running: Running
  readonly #folder: string
  #isWanted = true

  private constructor(running: Running, folder: string) {
    this.#running = running
    this.#folder = folder
  }

  static async start({ name, command, args, environment = {}, ready = /^ready$/m }: Command): Promise<Program> {
    const folder = await guard().folder()
    const variables = Object.entries(environment).map(([key, value]) => `${key}=${value}`)
    const running = await launch({
      ...{ name, folder, ready, url: '', port: 0, quit: 'SIGTERM', drop: 'SIGKILL' },
      command: 'env',
      args: [...variables, command, ...args],
    })
    return new Program(running, folder)
  }

  get pid(): number {
    return this.#running.pid
  }

  /** How it ended although nobody wanted it to; undefined: it has not. */
  get trouble(): string | undefined {
    return this.#isWanted ? this.#running.how : undefined
  }

  /** SIGKILL: no chance to finish or hand over. SIGTERM: it is awaited. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#isWanted = false
    await guard().signal(this.#running, signal)
    await guard().hold(this.#running.ended)
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    await guard().drop(this.#running)
    await guard().remove(this.#folder)
  }
}
