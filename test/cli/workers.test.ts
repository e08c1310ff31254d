/** Workers, as `millpond workers`, `top`, `explain` and `doctor` tell of them: what they keep for urgent jobs, and which are silent. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { ran } from './in-process.ts'
import { freshUrl, onStores } from './stores.ts'

const BEAT = { queue: 'mails', host: 'web-1', pid: 4242, slots: 10, busy: 3 }

const on = (url: string) => {
  const ok = async (...args: string[]) => {
    const { code, out, err } = await ran([...args, '--store', url])
    assert.equal(code, 0, `${args.join(' ')}: ${out}${err}`)
    return out
  }
  const json = async (...args: string[]) =>
    (await ok(...args, '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { ok, json }
}

/** Two workers of a queue with a job that waits, of which one was heard of 32 s ago; and a job that this one runs. */
async function killed(t: TestContext) {
  const url = freshUrl(t, 'sqlite')
  const store = await openStore(url, {})
  after(t, () => store.close())
  const pond = await Millpond.open(url)
  await pond.queue('mails').pushMany([1, 2])
  await pond.close()
  const workers = [
    { ...BEAT, id: 'killed' },
    { ...BEAT, id: 'alive', pid: 77 },
  ]
  await store.operations.heartbeat({ workers, gone: [] })
  const { jobs } = await store.operations.claim({ queue: 'mails', worker: 'killed', limit: 1, lease: 600_000 })
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(`update millpond_workers set seen = seen - 32000, since = since - 60000 where id = 'killed'`)
  db.close()
  return { url, running: jobs[0]?.id ?? '' }
}

onStores('lanes of a worker are told, and a process without them tells none', async (t, url) => {
  const store = await openStore(url, {})
  after(t, () => store.close())
  const pond = await Millpond.open(url)
  const lanes = [
    { minPriority: 5, reserve: 1 },
    { minPriority: 8, reserve: 2 },
  ]
  const queue = pond.queue('mails')
  await queue.push(1, { delay: '1h' })
  const worker = queue.work(() => {}, { concurrency: 10, lanes })
  // As an older process tells. On SQLite a heartbeat that meets a writer is made another time.
  const older = { workers: [{ ...BEAT, id: 'older' }], gone: [] }
  await until(async () => (await store.operations.heartbeat(older)).every(Boolean), 'the older worker to be heard')
  const { ok, json } = on(url)
  await until(async () => (await pond.workers()).length === 2, 'both workers to be told of')
  const told = await json('workers', 'mails')
  const ours = told.find(({ id }) => id === worker.id)
  assert.deepEqual(ours?.lanes, lanes.toReversed())
  assert.deepEqual([ours?.silent, Number.isSafeInteger(ours?.silence)], [false, true])
  assert.equal(told.find(({ id }) => id === 'older')?.lanes, null)
  const text = await ok('workers')
  assert.match(text, /^queue +host +pid +busy +since +last heard +lanes +id$/m)
  assert.match(text, /^mails .* \ds ago +2 of 10 for priority >= 8, 1 of 10 for priority >= 5 +\S+$/m)
  assert.match(text, /^mails .* \ds ago +- +older$/m)
  await worker.close()
  await pond.close()
})

test('a worker that missed two heartbeats is silent, and its jobs come back: in workers, top, stats and doctor', async (t) => {
  const { url } = await killed(t)
  const { ok, json } = on(url)
  const [first, second] = await json('workers')
  assert.deepEqual([first.id, first.silent, first.silence >= 32_000], ['killed', true, true])
  assert.deepEqual([second.id, second.silent, second.silence < 30_000], ['alive', false, true])
  const text = await ok('workers')
  assert.match(text, /^mails +web-1 +4242 +3\/10 .* silent since \d\d s +killed$/m)
  assert.match(text, /^mails +web-1 +77 +3\/10 .* \ds ago +alive$/m)
  assert.match(text, /^1 worker has missed two heartbeats.*: its jobs come back when their leases end\.$/m)
  assert.doesNotMatch(text, /lanes/)
  const told = /mails: 1 of 2 workers is silent since \d\d s → jobs come back when leases end; mi/
  assert.match(await ok('stats'), told)
  const top = await ok('top', '--once')
  assert.match(top, told)
  assert.match(top, /1 worker in 1 process, 1 silent$/m)
  assert.match(top, /^mails .* 3\/10$/m)
  const found = await ran(['doctor', '--store', url])
  assert.equal(found.code, 3)
  assert.match(found.out, /^warning {2}silent: mails: 1 of 2 workers is silent/m)
})

test('explain tells of silent workers of a queue, and of the one that runs a job', async (t) => {
  const { url, running } = await killed(t)
  const { ok } = on(url)
  const told = await ok('explain', 'mails')
  assert.match(
    told,
    /The worker of process 4242 on web-1 is silent since \d\d s: it may have been killed, and its jobs come back/,
  )
  assert.match(told, /1 worker works on it; 3 of 10 slots are busy\./)
  assert.match(
    await ok('explain', running),
    /runs on worker killed, which is silent since \d\d s: .* the job comes back when its lease ends\./,
  )
})
