/** Producers and workers run on both stores while the jobs between them are moved, and moves end in the middle. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { type MoveReport, move } from '../../src/move/index.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

const folder = sharedFolder()
const sqlite = () => `sqlite:${join(folder, `${randomUUID()}.db`)}`
const redis = () => `${serverUrl('redis')}?prefix=${freshPrefix()}`
const PAIRS = [
  { name: 'sqlite to redis', skip: missingReason('redis'), from: sqlite, to: redis },
  { name: 'redis to postgres', skip: missingReason('redis') || missingReason('postgres'), from: redis, to: undefined },
] as const

const AT_FIRST = 3000
const LATER = 300

for (const { name, skip, from, to } of PAIRS) {
  test(`${name}: every job is run once`, { skip }, async () => {
    const schema = newSchema()
    const urls = { source: from(), target: to?.() ?? `${serverUrl('postgres')}?schema=${schema}` }
    const source = await Millpond.open(urls.source)
    const target = await Millpond.open(urls.target)
    try {
      const runs = new Map<number, number>()
      const handler = ({ data }: { data: number }) => void runs.set(data, (runs.get(data) ?? 0) + 1)
      const queues = [source, target].map((pond) => pond.queue<number>('numbers'))
      const [old, fresh] = queues
      assert.ok(old && fresh)
      await old.pushMany(Array.from({ length: AT_FIRST }, (_, n) => n))
      let next = AT_FIRST
      const produce = async () => {
        for (let n = 0; n < LATER; n++) await queues[n % 2]?.push(next++, n % 3 === 0 ? { delay: 50 } : {})
      }
      for (const queue of queues) queue.work(handler, { concurrency: 2 })
      const producing = produce()
      // Each move is stopped in the middle, but for the last.
      const ends: MoveReport[] = []
      for (let run = 0; run < 4; run++) {
        const stop = new AbortController()
        const onProgress = () => stop.abort()
        const moving = move(urls.source, urls.target, { follow: true, signal: stop.signal, onProgress })
        if (run < 3) await until(async () => (await target.stats())[0]?.counts !== undefined, 'the target to have jobs')
        else {
          await producing
          await until(() => runs.size === next, 'all jobs to be run')
        }
        stop.abort()
        ends.push(await moving)
      }
      assert.equal(runs.size, AT_FIRST + LATER)
      assert.deepEqual(
        [...runs].filter(([, count]) => count !== 1),
        [],
      )
      assert.ok(ends.every(({ stopped, left }) => stopped && left === 0))
      assert.ok(ends.reduce((sum, { moved }) => sum + moved, 0) > 0)
    } finally {
      await source.close()
      await target.close()
      await dropSchema(schema)
      for (const url of Object.values(urls)) {
        const [, prefix] = /prefix=(.*)$/.exec(url) ?? []
        if (prefix !== undefined) await removePrefix(serverUrl('redis') ?? '', prefix)
      }
    }
  })
}
