/** A server as one process, over a folder and a port that stay its own through kills and restarts. */

import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import { guard, type Running } from './guard.ts'
import type { Server } from './server.ts'

/** How long a server may take to answer, in milliseconds. Generous: it only costs time when something is wrong. */
const BOUND = 60_000

export interface Recipe {
  name: string
  url: string
  port: number
  folder: string
  command: string
  args: readonly string[]
  account?: Account | undefined
  /** What it writes when it is ready to answer. */
  ready: RegExp
  /** Ends it in good order. */
  quit: NodeJS.Signals
  /** Ends it at once without leaving anything behind. */
  drop: NodeJS.Signals
  /** What it writes when it cannot start yet, because what is left of the former process has to go first. */
  notYet?: RegExp
}

export class ServerProcess implements Server {
  readonly #recipe: Recipe
  #running: Running

  constructor(recipe: Recipe, running: Running) {
    this.#recipe = recipe
    this.#running = running
  }

  get name(): string {
    return this.#recipe.name
  }

  get url(): string {
    return this.#recipe.url
  }

  get port(): number {
    return this.#recipe.port
  }

  get folder(): string {
    return this.#recipe.folder
  }

  get pid(): number {
    return this.#running.pid
  }

  get alive(): boolean {
    return this.how === undefined
  }

  /** The signal that ended it, or `exit code 0`; undefined: it runs. */
  get how(): string | undefined {
    return this.#running.how
  }

  /** The last of what it wrote. */
  get words(): string {
    return tail(logOf(this.#recipe))
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await guard().signal(this.#running, signal)
    if (signal === 'SIGKILL') await guard().hold(this.#running.ended)
  }

  async restart(): Promise<void> {
    if (this.alive) {
      await this.kill(this.#recipe.quit)
      await this.kill('SIGCONT') // a stopped process sees its signals when it goes on
      await guard().hold(this.#running.ended)
    }
    this.#running = await launch(this.#recipe)
  }

  async stop(): Promise<void> {
    await guard().drop(this.#running)
    await guard().remove(this.#recipe.folder)
  }
}

/** Starts it; resolves when it answers. */
export async function launch(recipe: Recipe): Promise<Running> {
  const { command, args, folder, account, drop } = recipe
  const log = logOf(recipe)
  const end = performance.now() + BOUND
  for (;;) {
    const before = statSync(log, { throwIfNoEntry: false })?.size ?? 0
    const words = () => readFileSync(log).subarray(before).toString()
    const running = await guard().start({ command, args, folder, account, drop, log })
    while (!recipe.ready.test(words())) {
      if (running.how !== undefined) break
      if (performance.now() > end) {
        await guard().drop(running)
        throw new Error(`${recipe.name} does not answer after ${BOUND} ms\n${tail(log)}`)
      }
      await sleep(10)
    }
    if (running.how === undefined) return running
    if (!recipe.notYet?.test(words()) || performance.now() > end) {
      throw new Error(`${recipe.name} did not start (${running.how}): ${command} ${args.join(' ')}\n${tail(log)}`)
    }
    await sleep(50)
  }
}

/** A program that does its work and ends, such as initdb. */
export async function runTool(recipe: Pick<Recipe, 'command' | 'args' | 'folder' | 'account'>): Promise<void> {
  const log = join(recipe.folder, 'tool.log')
  // Not SIGKILL: initdb waits for the servers that it runs itself.
  const running = await guard().start({ ...recipe, drop: 'SIGTERM', log })
  await guard().hold(running.ended)
  if (running.how !== 'exit code 0') {
    throw new Error(`${recipe.command} ${recipe.args.join(' ')} failed (${running.how})\n${tail(log)}`)
  }
}

const logOf = ({ folder }: Recipe): string => join(folder, 'server.log')
const tail = (log: string): string => readFileSync(log, 'utf8').slice(-2000)
