/**
 * Processes push jobs of the same few keys to PostgreSQL, while a worker works them off: how long a push takes, and that none is rejected. The
 * same beside an application's transaction that stays open and has pushed a job of one key: only that key's pushes wait for it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Millpond } from '../../src/index.ts'
import { atMost } from '../bars.ts'
import { Child, holds } from '../child.ts'
import type { Experiment } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'

const MAX_P99 = 250
const HANDLER_MS = 5

const flags = {
  seconds: whole('that are measured, each', '60', '5'),
  processes: whole('that push', '10', '3'),
  keys: whole('of all jobs', '40'),
  loops: whole('of each process, which await their pushes', '10'),
}

interface Told {
  pushes: number
  p50: number
  p99: number
  most: number
  rejected: number
  messages: string[]
  firstKey: { pushes: number; rejected: number; messages: string[] }
}

export const keys: Experiment<typeof flags> = {
  id: 'keys',
  flags,
  about: ({ processes, loops, keys: count, seconds }) =>
    `${processes} processes push jobs of ${count} keys for ${seconds} s, each with ${loops} pushes in flight. The first key is counted apart.`,
  async *measure({ seconds, processes, keys: count, loops }, stage) {
    const place = await stage.place('postgres')
    const rows = []
    for (const [name, replaces, isHeld] of [
      ['keys', false, false],
      ['keys, and a stranger holds one', false, true],
      ['replace', true, false],
      ['replace, and a stranger holds one', true, true],
    ] as const) {
      tell(name)
      const url = await place.fresh()
      const pond = await Millpond.open(url)
      const queue = pond.queue<number>('keyed', { keep: { done: '1m' } })
      await queue.push(0)
      queue.work(() => sleep(HANDLER_MS), { concurrency: 10 })
      const script = new URL('pusher.ts', import.meta.url)
      const args = [url, `${count}`, `${loops}`, replaces ? 'replace' : '']
      const pushers = await Promise.all(Array.from({ length: processes }, () => Child.start(script, args)))
      const stranger = new pg.Client({ connectionString: url })
      if (isHeld) {
        await stranger.connect()
        await stranger.query('begin')
        await queue.push(0, { key: 'k0', tx: stranger })
      }
      await Promise.all(pushers.map((pusher) => pusher.tell(holds<{ began: true }>('began'))))
      await sleep(seconds * 1000)
      const told = await Promise.all(pushers.map((pusher) => pusher.tell(holds<Told>('pushes', 'p99'))))
      await Promise.all(pushers.map((pusher) => pusher.kill()))
      if (isHeld) await stranger.end()
      await pond.close({ timeout: 0 })
      const sum = (of: (one: Told) => number) => told.reduce((all, one) => all + of(one), 0)
      const worst = (of: (one: Told) => number) => Math.max(...told.map(of))
      const figures = {
        ...{ name, pushes: sum((one) => one.pushes), rejected: sum((one) => one.rejected) },
        ...{ p50: worst((one) => one.p50), p99: worst((one) => one.p99), most: worst((one) => one.most) },
        first: { pushes: sum((one) => one.firstKey.pushes), rejected: sum((one) => one.firstKey.rejected) },
        messages: told.flatMap((one) => [...one.messages, ...one.firstKey.messages]).slice(0, 3),
      }
      const { pushes, rejected, p50, p99, most, first } = figures
      rows.push({
        cells: [
          ...[name, Math.round(pushes / seconds).toLocaleString('en'), p50.toFixed(1), p99.toFixed(1), most.toFixed(0)],
          ...[`${rejected}`, `${first.pushes} (${first.rejected})`],
        ],
        bars: [atMost(p99, MAX_P99, ' ms'), atMost(rejected, 0, ' rejected')],
        figures,
      })
    }
    yield {
      head: [
        ...['pushes', 'per s', 'p50 ms of the slowest process', 'p99 ms', 'longest', 'rejected'],
        'of the first key (rejected)',
      ],
      rows,
    }
  },
}
