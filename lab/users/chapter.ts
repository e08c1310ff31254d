/** E1 of the report: a write behind a queue. */
import type { ChapterPlan } from '../chapter.ts'
import { generator } from '../load/load.ts'
import { type Finding, numberIn, type Part, partOf, rowOf } from '../report/model.ts'
import { shown } from '../report/units.ts'
import { crews } from './parts/crews.ts'
import { following } from './parts/following.ts'
import { kills } from './parts/kills.ts'
import { CONNECTIONS, ratesOf, SECONDS } from './parts/rates.ts'
import { placesOf } from './places.ts'

export const users: ChapterPlan = {
  id: 'E1',
  title: 'A write behind a queue',
  short: 'Writes',
  question:
    'Each request writes a row. What does it cost to answer before the row is written, and what is lost when a process dies?',
  takes: { smoke: 60, usual: 175, full: 1500 },
  published: [
    {
      title: 'Published: 5 connections, 10 s, one server',
      head: ['variant', 'requests/s', 'p95'],
      rows: [
        ['insert before answering', '1,269', '5.24 ms'],
        ['Redis list, consumer in the server', '4,876', '2.16 ms'],
        ['Redis list, consumer apart', '5,423', '1.71 ms'],
      ],
      note: 'Left unsolved there: rows far behind the load, messages lost with a consumer, inserts in batches, several processes, an id to follow a request by.',
    },
  ],
  setUp: ({ pick }) => [
    'POST /users with {"name": "…"} answers 202. The name becomes a row of users(id serial primary key, name text not null) on PostgreSQL.',
    `${pick(CONNECTIONS).join(' and ')} connections in a closed loop for ${pick(SECONDS)} s after warming up, ${generator}; all names differ.`,
    'Each run has fresh server processes and empty stores. PostgreSQL and SQLite have each commit on the disk; Redis keeps nothing on the disk, as in the write-up.',
    'Millpond’s worker writes up to 500 names with one insert: batch: { max: 500, within: 20ms, min: 100 }.',
  ],
  async *measure(run) {
    const places = await placesOf(run.stage, false)
    for (const connections of run.pick(CONNECTIONS)) yield await ratesOf(run, connections, places)
    yield await crews(run, places)
    yield await kills(run, places)
    yield await following(run, places)
  },
  findings,
}

function findings(parts: readonly Part[]): Finding[] {
  const found: Finding[] = []
  const rates = partOf(parts, 'rates-64') ?? partOf(parts, 'rates-5')
  const [insert, apart, redis] = ['insert', 'apart', 'redis'].map((name) => rowOf(rates, name))
  const [insertRate, rate] = [numberIn(insert, 'rate'), numberIn(redis, 'rate')]
  const id = rates?.id ?? ''
  const left = numberIn(apart, 'left')
  if (left !== undefined && left > 0) {
    found.push({
      verdict: 'falls',
      figure: `${shown(left, 'count')} names`,
      text: 'still waited in the Redis list when the load ended: a single consumer inserts one row per message.',
      part: id,
    })
  }
  if (insertRate !== undefined && rate !== undefined) {
    found.push({
      verdict: rate > insertRate ? 'holds' : 'missed',
      figure: `${shown(rate / insertRate, 'times')} the requests`,
      text: `of the insert before the answer, ${shown(rate, 'per second')} with Millpond on Redis. The last row was there ${words(redis?.figures.behind)} after the load.`,
      part: id,
    })
  }
  const killed = partOf(parts, 'kills')
  const lossy = killed?.rows.filter((row) => row.kind === 'plain' && (numberIn(row, 'lost') ?? 0) > 0) ?? []
  if (lossy.length > 0) {
    const most = Math.max(...lossy.map((row) => numberIn(row, 'lost') ?? 0))
    found.push({
      verdict: 'falls',
      figure: `${shown(most, 'count')} ${most === 1 ? 'name' : 'names'} lost`,
      text: `after a 202, by a Redis list whose consumer was killed ${times(numberIn(lossy[0], 'kills'))}: what it had popped is gone.`,
      part: 'kills',
    })
  }
  const ours = killed?.rows.filter(({ kind }) => kind === 'ours') ?? []
  if (ours.length > 0) {
    const sum = (key: string) => ours.reduce((all, row) => all + (numberIn(row, key) ?? 0), 0)
    found.push({
      verdict: sum('lost') === 0 ? 'holds' : 'missed',
      figure: `${shown(sum('lost'), 'count')} lost`,
      text: `of ${shown(sum('accepted'), 'count')} names that Millpond accepted, with server and worker killed by SIGKILL; ${shown(sum('twice'), 'count')} were written twice.`,
      part: 'kills',
    })
  }
  const known = partOf(parts, 'following')?.rows.flatMap((row) => numberIn(row, 'knownP50') ?? []) ?? []
  if (known.length > 0) {
    found.push({
      verdict: 'holds',
      figure: shown(Math.min(...known), 'ms'),
      text: 'from a request to the client that knows its row, followed by the id of the 202.',
      part: 'following',
    })
  }
  return found
}

const times = (count = 0): string => (count === 1 ? 'once' : `${count} times`)

const words = (value: number | string | null | undefined): string =>
  typeof value === 'number' ? shown(value, 'ms') : String(value ?? 'long')
