/**
 * A session of a race: its operations step by step, each in a transaction of its own.
 *
 *   ready ──call──► calling ──answer──► answered ──commit──► ready | over
 *                     ├─► waiting  for a lock of another session ──► calling
 *                     └─► stopped  where its script says ──go on──► calling
 *
 * Whether a call waits is what the server says (`pg_blocking_pids`); time alone says nothing.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Script, Stop } from '../arena.ts'
import { type Calls, type Effect, type Kind, type Operation, operation, perform } from '../operations.ts'
import type { World } from '../world.ts'
import { sqlCalls } from './sql-calls.ts'
import type { Gate } from './stops.ts'

type State = 'ready' | 'calling' | 'waiting' | 'stopped' | 'answered' | 'over'

/** Ms after which the server is asked whether a call waits. */
const ASK_AFTER = 2
/** A sleeper asks again so many times inside a race. */
const MOST_REPEATS = 1

export interface Connected {
  client: pg.Client
  pid: number
}

export async function connect(url: string): Promise<Connected> {
  const client = new pg.Client({ connectionString: url })
  // A test that ends while it waits.
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  await client.query(`set deadlock_timeout = '20ms'; set statement_timeout = '20s'; set synchronous_commit = off`)
  return { client, pid: Number(rows[0]?.pid) }
}

export class Session {
  readonly #number: number
  readonly #client: pg.Client
  readonly #pid: number
  readonly #calls: Calls
  readonly #observer: pg.Client
  readonly #gate: Gate
  #world: World | undefined
  #left: Operation[] = []
  #repeats = 0
  #stop: Stop | undefined
  #state: State = 'over'
  #call: Promise<void> = Promise.resolve()
  #outcome: { effect?: Effect; error?: unknown } | undefined
  /** By kind of operation, the statements that it makes. */
  readonly #seen: Map<string, Set<string>>

  constructor(
    number: number,
    { client, pid }: Connected,
    schema: string,
    shared: { observer: pg.Client; gate: Gate; seen: Map<string, Set<string>> },
  ) {
    this.#number = number
    this.#client = client
    this.#pid = pid
    this.#calls = sqlCalls(client, schema, 'sleeper')
    this.#observer = shared.observer
    this.#gate = shared.gate
    this.#seen = shared.seen
  }

  /** Processes of the server for which its call waits. */
  waitsFor: readonly number[] = []

  get pid(): number {
    return this.#pid
  }

  get state(): State {
    return this.#state
  }

  /** The operation that it is at. */
  get at(): Kind | 'nothing' {
    return this.#left[0]?.kind ?? 'nothing'
  }

  begin(world: World, { operations, stop }: Script): void {
    this.#world = world
    this.#left = [...operations]
    this.#stop = stop
    this.#repeats = 0
    this.#state = operations.length > 0 ? 'ready' : 'over'
  }

  /** Goes on. @returns what went wrong */
  async step(): Promise<string | undefined> {
    if (this.#state === 'ready') await this.#start()
    else if (this.#state === 'stopped') await this.#goOn()
    else if (this.#state === 'answered') return this.#commit()
    return undefined
  }

  async #start(): Promise<void> {
    const [next] = this.#left
    const world = this.#world
    if (next === undefined || world === undefined) return
    const { statement, when } = this.#stop ?? {}
    if (statement !== undefined) await this.#gate.close(this.#number)
    await this.#client.query(
      `set explorer.session = ${this.#number}; set explorer.stop = '${when ?? ''} ${statement ?? ''}'; begin`,
    )
    this.#outcome = undefined
    this.#call = perform(this.#calls, next, world).then(
      (effect) => {
        this.#outcome = { effect }
      },
      (error: unknown) => {
        this.#outcome = { error }
      },
    )
    this.#state = 'calling'
    await this.settle()
  }

  async #goOn(): Promise<void> {
    await this.#openGate()
    this.#state = 'calling'
    await this.settle()
  }

  async #openGate(): Promise<void> {
    if (this.#stop === undefined) return
    this.#stop = undefined
    await this.#gate.open(this.#number)
  }

  /** Until the call is answered, or waits. */
  async settle(): Promise<void> {
    while (this.#state === 'calling' || this.#state === 'waiting') {
      await Promise.race([this.#call, sleep(ASK_AFTER)])
      if (this.#outcome !== undefined) {
        this.#state = 'answered'
        await this.#openGate()
        return
      }
      const { rows } = await this.#observer.query('select pg_blocking_pids($1) as pids', [this.#pid])
      const pids: unknown = rows[0]?.pids
      if (!Array.isArray(pids) || pids.length === 0) continue
      this.waitsFor = pids.map(Number)
      this.#state = pids.includes(this.#gate.pid) ? 'stopped' : 'waiting'
      return
    }
  }

  async #commit(): Promise<string | undefined> {
    const [made] = this.#left
    const { effect, error } = this.#outcome ?? {}
    const isLater = isHeld(error) && made?.kind.startsWith('fire')
    let fault = error === undefined ? undefined : `${faultOf(error)} in ${made?.kind}`
    if (fault === undefined) {
      const { rows } = await this.#client.query(`select current_setting('explorer.seen', true) as seen`)
      this.#note(made?.kind ?? '', String(rows[0]?.seen ?? ''))
    }
    try {
      await this.#client.query(fault === undefined ? 'commit' : 'rollback')
      if (fault === undefined) effect?.()
    } catch (refused) {
      fault = `${faultOf(refused)} at the commit of ${made?.kind}`
      await this.#client.query('rollback')
    }
    this.#left.shift()
    if (made?.kind === 'sleep' && this.#world?.sleeper?.again && ++this.#repeats <= MOST_REPEATS)
      this.#left.unshift(operation('sleep'))
    this.#state = this.#left.length > 0 ? 'ready' : 'over'
    return isLater ? undefined : fault
  }

  #note(kind: string, seen: string): void {
    const statements = this.#seen.get(kind) ?? new Set()
    this.#seen.set(kind, statements)
    for (const statement of seen.split(',')) if (statement !== '') statements.add(statement)
  }

  /** Whatever state the race has left it in. */
  async end(): Promise<void> {
    await this.#client.end()
  }
}

const isHeld = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '55P03'

function faultOf(error: unknown): string {
  const { code, message } = error instanceof pg.DatabaseError ? error : { code: '', message: String(error) }
  if (code === '40P01') return 'dead lock'
  // Numbers and ids tell nothing that is the same next time.
  return `error ${code} ${message.replaceAll(/[0-9a-f-]{36}|\d+/g, 'N').slice(0, 100)}`
}
