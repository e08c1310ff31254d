// node import.ts [--rows 1000000]: imports rows in chunks of 1,000, shows how far it is, and reports at the end.
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Millpond } from 'millpond'

const CHUNK = 1000
const { values } = parseArgs({ options: { rows: { type: 'string', default: '1000000' } } })
const rows = Number(values.rows)
const pond = await Millpond.open(process.env.STORE ?? 'memory:')
pond.on('dead', () => {})
// Kept until the report has read what they came to.
const chunks = pond.queue<{ from: number; to: number }, { rows: number }>('chunks', { keep: { done: '7d' } })
const reports = pond.queue<{ file: string }, { rows: number; failed: number }>('reports')

const db = new DatabaseSync(process.env.TABLE ?? ':memory:')
db.exec('create table if not exists birds (n integer primary key, name text)')
const insert = db.prepare('insert or replace into birds values (?, ?)')

chunks.work(({ data: { from, to } }) => {
  db.exec('begin')
  // A chunk that is tried again writes the same rows.
  for (let n = from; n < to; n++) insert.run(n, `bird ${n}`)
  db.exec('commit')
  return { rows: to - from }
})
reports.work(async (_job, ctx) => {
  const all = await ctx.parents<{ rows: number }>()
  const done = all.reduce((sum, { result }) => sum + (result?.rows ?? 0), 0)
  return { rows: done, failed: all.filter(({ state }) => state !== 'done').length }
})

const list = Array.from({ length: Math.ceil(rows / CHUNK) }, (_, at) => {
  return { from: at * CHUNK, to: Math.min(rows, (at + 1) * CHUNK) }
})
const { callback } = await chunks.pushMany(list, { callback: [reports, { file: 'birds.csv' }] })
for (;;) {
  const graph = await pond.graph(callback.id, { limit: list.length + 1 })
  const { done = 0, dead = 0, cancelled = 0 } = graph?.counts ?? {}
  const share = list.length === 0 ? 1 : Math.min(1, (done + dead + cancelled) / list.length)
  const bar = '█'.repeat(Math.round(share * 30)).padEnd(30, '·')
  console.log(`${bar} ${Math.floor(share * 100)} %, ${dead + cancelled} failed`)
  if ((graph?.left ?? 0) === 0) break
  await sleep(200)
}
console.log(await pond.result(callback.id))
await pond.close()
db.close()
