/** The processes of a run. None outlives us, and one that ends by itself ends the experiment with its last words. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isMessage, type Message } from './messages.ts'

const living = new Set<Child>()

export class Child {
  readonly name: string
  readonly #process: ChildProcess
  readonly #ready: Promise<number>
  #wanted = true
  #words = ''

  /** @param failed called when the process ends though nobody asked it to */
  constructor(name: string, args: string[], heard: (message: Message) => void, failed: (error: Error) => void) {
    this.name = name
    const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url))
    this.#process = fork(script, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    living.add(this)
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    this.#ready = promise
    // Whoever waits for it gets the error; so does `failed`.
    promise.catch(() => {})
    this.#process.on('message', (message) => {
      if (!isMessage(message) || !this.#wanted) return
      if (message.kind === 'ready') resolve(message.port ?? 0)
      if (message.kind === 'done') this.#wanted = false
      heard(message)
    })
    this.#process.stderr?.on('data', (words: Buffer) => {
      this.#words = (this.#words + words.toString()).slice(-4000)
    })
    this.#process.on('close', (code, signal) => {
      living.delete(this)
      if (!this.#wanted) return
      const error = new Error(`the ${name} process ended by itself (${signal ?? `exit code ${code}`})\n${this.#words}`)
      reject(error)
      failed(error)
    })
  }

  /** Resolves to the port of a server. */
  get ready(): Promise<number> {
    return this.#ready
  }

  /** SIGKILL: it gets no chance to finish, hand over or say goodbye. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#wanted = false
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }

  /** For the last moments of our own process. */
  killNow(): void {
    this.#wanted = false
    this.#process.kill('SIGKILL')
  }
}

export function killAll(): void {
  for (const child of living) child.killNow()
}
