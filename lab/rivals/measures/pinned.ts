/**
 * What an old transaction does to a queue in PostgreSQL: while it is open, vacuum can remove nothing that died since. Jobs are
 * pushed and drained in cycles, as fast as it goes, for minutes. The last fifth of the time counts, when the most has piled up.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { fill } from '../../bench/measures/push.ts'
import { rate } from '../../bench/measures/rounds.ts'
import { median } from '../../bench/statistics.ts'
import { openContender } from '../contender.ts'
import { Tally } from '../tally.ts'
import type { Measure, PinnedTask } from '../task.ts'
import { SLOTS } from './drain.ts'

const LAST = 0.8
const FIRST = 0.2
/** Of a cycle, at its ends: while the worker starts and runs dry. */
const EDGE = 0.1
/** PostgreSQL's processes report their counts at most once a second. */
const REPORTED = 1500
const MIB = 1024 ** 2

interface Cycle {
  /** Since the load began, in ms. */
  at: number
  push: number
  drain: number
}

export const pinned: Measure<PinnedTask> = async ({ contender: name, url, pinned: pin, seconds, cycle: size }) => {
  const contender = await openContender(name, { url, concurrency: SLOTS, forget: false })
  const client = new pg.Client(url)
  await client.connect()
  if (pin) {
    await client.query('begin isolation level repeatable read')
    await client.query('select 1') // the snapshot is taken by its first query
  }
  const handled = new Tally()
  const edge = Math.ceil(size * EDGE)
  let at = 0
  let first = 0
  let last = 0
  const line = contender.line('pinned', async () => {
    at++
    if (at === edge) first = performance.now()
    if (at === size - edge) last = performance.now()
    handled.add()
  })
  const cycles: Cycle[] = []
  const began = performance.now()
  while (performance.now() - began < seconds * 1000) {
    const pushed = await rate(size, () => fill(line, size))
    at = 0
    line.work()
    await handled.reaches((cycles.length + 1) * size)
    await line.stop()
    cycles.push({
      at: performance.now() - began,
      push: pushed.perSecond,
      drain: ((size - 2 * edge) / (last - first)) * 1000,
    })
  }
  await sleep(REPORTED)
  const watcher = new pg.Client(url)
  await watcher.connect()
  const { rows } = await watcher.query<{ dead: string; bytes: string }>(
    `select coalesce(sum(n_dead_tup), 0) as dead, coalesce(sum(pg_total_relation_size(relid)), 0) as bytes from pg_stat_user_tables`,
  )
  const tail = cycles.filter((cycle) => cycle.at > LAST * seconds * 1000)
  const head = cycles.filter((cycle) => cycle.at <= FIRST * seconds * 1000)
  return {
    push: median(tail.map(({ push }) => push)),
    drain: median(tail.map(({ drain }) => drain)),
    'drain at first': median(head.map(({ drain }) => drain)),
    jobs: cycles.length * size,
    dead: Number(rows[0]?.dead),
    size: Number(rows[0]?.bytes) / MIB,
  }
}
