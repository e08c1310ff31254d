/**
 * What an old transaction does to a queue in PostgreSQL: while it is open in a database, vacuum can remove nothing there that died
 * since. Jobs are pushed and drained in cycles, as fast as it goes, for minutes, in such a database and in one without, in turn: so
 * both meet the same machine. The last fifth of the time counts, when the most has piled up.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { median } from '../../statistics.ts'
import { type ContenderName, openContender } from '../contender.ts'
import { Tally } from '../tally.ts'
import type { Measure, Outcome, PinnedTask } from '../task.ts'
import { SLOTS } from './drain.ts'
import { fill } from './push.ts'
import { rate } from './rounds.ts'

const LAST = 0.8
const FIRST = 0.2
/** Of a cycle, at its ends: while the worker starts and runs dry. */
const EDGE = 0.1
/** PostgreSQL's processes report their counts at most once a second. */
const REPORTED = 1500
const MIB = 1024 ** 2

interface Cycle {
  push: number
  drain: number
}

export const pinned: Measure<'pinned'> = async ({ contender, url, seconds, cycle, path }) => {
  const held = await Side.open(contender, url, cycle, path)
  const free = await Side.open(contender, await besides(url), cycle, path)
  const old = new pg.Client(url)
  await old.connect()
  await old.query('begin isolation level repeatable read')
  await old.query('select 1') // the snapshot is taken by its first query
  while (held.load + free.load < 2000 * seconds) {
    await held.turn()
    await free.turn()
  }
  await sleep(REPORTED)
  return { ...(await held.figures('with it')), ...(await free.figures('without it')) }
}

/** Another database on the same server, with nothing in it. */
async function besides(url: string): Promise<string> {
  const client = new pg.Client(url)
  await client.connect()
  const other = new URL(url)
  other.pathname += '_free'
  const name = pg.escapeIdentifier(other.pathname.slice(1))
  await client.query(`drop database if exists ${name} with (force)`)
  await client.query(`create database ${name}`)
  await client.end()
  return other.href
}

/** The queue in one of the databases. */
class Side {
  readonly #url: string
  readonly #size: number
  readonly #handled = new Tally()
  readonly #line
  readonly #cycles: Cycle[] = []
  /** Milliseconds of load until now. */
  load = 0
  #at = 0
  #first = 0
  #last = 0

  static async open(name: ContenderName, url: string, size: number, path: PinnedTask['path']): Promise<Side> {
    return new Side(await openContender(name, { url, concurrency: SLOTS, forget: false, path }), url, size, path)
  }

  constructor(
    contender: Awaited<ReturnType<typeof openContender>>,
    url: string,
    size: number,
    path: PinnedTask['path'],
  ) {
    this.#url = url
    this.#size = size
    const edge = Math.ceil(size * EDGE)
    const failed = new Set<number>()
    this.#line = contender.line('pinned', async ({ n }) => {
      // Of each cycle every tenth, at its first attempt.
      if (path === 'retried' && n % 10 === 0 && !failed.delete(n)) {
        failed.add(n)
        throw new Error('once more')
      }
      this.#at++
      if (this.#at === edge) this.#first = performance.now()
      if (this.#at === size - edge) this.#last = performance.now()
      this.#handled.add()
    })
  }

  /** One cycle. */
  async turn(): Promise<void> {
    const began = performance.now()
    const size = this.#size
    const pushed = await rate(size, () => fill(this.#line, size))
    this.#at = 0
    this.#line.work()
    await this.#handled.reaches((this.#cycles.length + 1) * size)
    await this.#line.stop()
    const drained = size - 2 * Math.ceil(size * EDGE)
    this.#cycles.push({ push: pushed.perSecond, drain: (drained / (this.#last - this.#first)) * 1000 })
    this.load += performance.now() - began
  }

  async figures(which: string): Promise<Outcome> {
    const watcher = new pg.Client(this.#url)
    await watcher.connect()
    const { rows } = await watcher.query<{ dead: string; bytes: string }>(
      `select coalesce(sum(n_dead_tup), 0) as dead, coalesce(sum(pg_total_relation_size(relid)), 0) as bytes from pg_stat_user_tables`,
    )
    const cycles = this.#cycles
    // Both sides have made as many.
    const tail = cycles.slice(Math.floor(LAST * cycles.length))
    const head = cycles.slice(0, Math.ceil(FIRST * cycles.length))
    const figures = {
      push: median(tail.map(({ push }) => push)),
      drain: median(tail.map(({ drain }) => drain)),
      'drain at first': median(head.map(({ drain }) => drain)),
      'push at first': median(head.map(({ push }) => push)),
      jobs: cycles.length * this.#size,
      dead: Number(rows[0]?.dead),
      size: Number(rows[0]?.bytes) / MIB,
    }
    return Object.fromEntries(Object.entries(figures).map(([figure, value]) => [`${figure}, ${which}`, value]))
  }
}
