/** What the fault tests share: child processes, waiting with a bound, and looking into the file past Millpond. */

import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { JobState } from '../../src/values/jobs/records.ts'
import { after } from '../support/cleaning.ts'
import { BOUND, until } from '../support/until.ts'

/** What children and tests say to each other. */
export interface Message {
  kind: string
  [field: string]: unknown
}

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string'

/** The promise's outcome, or an error if there is none within the bound: a call that hangs must say so itself. */
export async function settles<T>(what: string, promise: Promise<T>, bound: number = BOUND): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`hangs: ${what}`)), bound)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export interface StartOptions {
  /** Where the tree with the role is; this one unless set. */
  tree?: URL
  /** Most bytes of any file that it writes, in KiB; the test may raise it again. */
  fileLimit?: number
  /** Its working folder, for core dumps and the like. */
  cwd?: string
}

/** Code that Node has compiled, for all test runs: hundreds of processes are started here, each for a few seconds. */
const CACHE = join(tmpdir(), 'millpond-compiled')

/** A process of ours. */
export class Child {
  readonly role: string
  readonly messages: Message[] = []
  /** Resolves when it is gone, however that came about. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  readonly #process: ChildProcess
  #words = ''

  constructor(role: string, config: object, { tree, fileLimit, cwd }: StartOptions = {}) {
    this.role = role
    const script = fileURLToPath(new URL(`test/faults/roles/${role}.ts`, tree ?? new URL('../../', import.meta.url)))
    const node = [process.execPath, '--no-warnings', script, JSON.stringify(config)]
    const limited = ['bash', '-c', `ulimit -S -f ${fileLimit}; exec "$@"`, 'bash', ...node]
    const [command = '', ...args] = fileLimit === undefined ? node : limited
    this.#process = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // With a limit, the cache could not be written either.
      env: { ...process.env, ...(fileLimit === undefined ? { NODE_COMPILE_CACHE: CACHE } : {}) },
      ...(cwd === undefined ? {} : { cwd }),
    })
    this.#process.on('message', (message) => {
      if (isMessage(message)) this.messages.push(message)
    })
    this.#process.stderr?.on('data', (words: Buffer) => {
      this.#words = (this.#words + words.toString()).slice(-4000)
    })
    this.exited = new Promise((resolve, reject) => {
      this.#process.once('error', reject)
      this.#process.once('close', (code, signal) => resolve({ code, signal }))
    })
    // Whoever waits for it gets the error.
    this.exited.catch(() => {})
  }

  get pid(): number {
    const { pid } = this.#process
    if (pid === undefined) throw new Error(`the ${this.role} process could not be started`)
    return pid
  }

  get alive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** The last of what it wrote to stderr. */
  get words(): string {
    return this.#words
  }

  send(message: Message): void {
    // To a process that is just going, nothing can be said; the test sees that it goes.
    this.#process.send(message, () => {})
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  said(kind: string): Message[] {
    return this.messages.filter((message) => message.kind === kind)
  }

  /** Waits until it has said so that many times; returns the last of them. */
  async hear(kind: string, count = 1): Promise<Message> {
    await until(() => {
      if (this.said(kind).length >= count) return true
      if (!this.alive) throw new Error(`the ${this.role} process ended before it said "${kind}"\n${this.#words}`)
      return false
    }, `the ${this.role} process says "${kind}" ${count} times`)
    const message = this.said(kind)[count - 1]
    if (message === undefined) throw new Error('unreachable')
    return message
  }

  /** Asks it something, and waits for the answer of that kind. */
  ask(kind: string): Promise<Message> {
    const before = this.said(kind).length
    this.send({ kind })
    return this.hear(kind, before + 1)
  }
}

/** Starts the role in a process of its own; whatever becomes of the test, the process ends with it. */
export function start(t: TestContext, role: string, config: object, options?: StartOptions): Child {
  const child = new Child(role, config, options)
  after(t, async () => {
    if (child.alive) child.kill('SIGKILL')
    await child.exited
  })
  return child
}

export type Row = Record<string, unknown>

/** Reads the file with a connection of its own. */
export function look(path: string, sql: string, ...values: (string | number)[]): Row[] {
  const db = new DatabaseSync(path, { timeout: 10_000 })
  try {
    return db.prepare(sql).all(...values)
  } finally {
    db.close()
  }
}

/** What SQLite finds wrong with the file. */
export function faultsOf(path: string): string[] {
  return look(path, 'pragma integrity_check')
    .map((row) => String(row.integrity_check))
    .filter((fault) => fault !== 'ok')
}

export type Counts = Record<JobState, number>

/** Jobs per state: as the store keeps them, and as they are. */
export function countsOf(path: string, queue: string): { kept: Counts; real: Counts } {
  const kept = look(path, `select name, count from millpond_counts where queue = ? and kind = 'state'`, queue)
  const real = look(
    path,
    'select state as name, count(*) as count from millpond_jobs where queue = ? group by state',
    queue,
  )
  return { kept: tally(kept), real: tally(real) }
}

function tally(rows: Record<string, unknown>[]): Counts {
  const counts = { blocked: 0, scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 }
  for (const { name, count } of rows) Object.assign(counts, { [String(name)]: Number(count) })
  return counts
}

/** How many are neither done nor given up, by the store's counts. */
export function liveIn(path: string, queue: string): number {
  const { scheduled, waiting, running } = countsOf(path, queue).kept
  return scheduled + waiting + running
}

/** Numbers from 0 to 1 that follow from the seed alone (mulberry32), so that a failing run can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
