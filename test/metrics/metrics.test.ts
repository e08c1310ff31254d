/** `metrics(pond)`: what a scrape shows, and what it costs. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Millpond, type StoreOperation } from '../../src/index.ts'
import { exposition } from '../../src/metrics/exposition.ts'
import { ListedQueues } from '../../src/metrics/listed-queues.ts'
import { openStore } from '../../src/stores/open.ts'
import { metrics } from '../../src/web/metrics.ts'
import { onEachStore } from '../api/suite.ts'
import { meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'
import { webTest } from '../web/serving.ts'

const request = (method = 'GET') => new Request('http://localhost/metrics', { method })

/** The value of a series, as it is written; undefined if there is none. */
function valueIn(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

async function scrape(pond: Millpond, options?: Parameters<typeof metrics>[1]): Promise<string> {
  const response = await metrics(pond, options)(request())
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  return response.text()
}

onEachStore('metrics', {
  'totals, depth, times, limits and workers of a queue': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('mail', {
      ...{ capacity: 100, limits: { running: 7, rate: '600/m', group: { running: 1 } } },
      retry: { attempts: 1 },
    })
    await queue.pushMany([1, 2, 3, 4], { each: (n) => ({ group: `tenant-${n}`, key: `key-${n}` }) })
    const { id } = await queue.push(5, { delay: '1h' })
    await pond.cancel(id)
    pond.on('dead', () => {})
    const worker = queue.work(
      ({ data }) => {
        if (data === 3) throw new Error('no')
      },
      { concurrency: 3 },
    )
    await until(async () => (await queue.stats()).counts.waiting + (await queue.stats()).counts.running === 0)
    await worker.close()
    queue.work(() => {}, { concurrency: 3 })
    await until(async () => (await pond.workers()).length === 1)
    await queue.pause()
    await queue.push(6)
    const text = await scrape(pond)
    const values = {
      'millpond_jobs_pushed_total{queue="mail"}': 6,
      'millpond_jobs_done_total{queue="mail"}': 3,
      'millpond_attempts_failed_total{queue="mail"}': 1,
      'millpond_jobs_dead_total{queue="mail"}': 1,
      'millpond_jobs_cancelled_total{queue="mail"}': 1,
      'millpond_leases_lost_total{queue="mail"}': 0,
      'millpond_jobs{queue="mail",state="waiting"}': 1,
      'millpond_jobs{queue="mail",state="dead"}': 1,
      'millpond_job_wait_seconds_count{queue="mail"}': 4,
      'millpond_job_run_seconds_count{queue="mail"}': 4,
      'millpond_queue_paused{queue="mail"}': 1,
      'millpond_queue_capacity{queue="mail"}': 100,
      'millpond_running_limit{queue="mail"}': 7,
      'millpond_start_rate_limit{queue="mail"}': 10,
      'millpond_groups_at_limit{queue="mail"}': 0,
      'millpond_workers{queue="mail"}': 1,
      'millpond_worker_slots{queue="mail"}': 3,
      'millpond_worker_slots_busy{queue="mail"}': 0,
      millpond_queues: 1,
    }
    for (const [series, value] of Object.entries(values)) assert.equal(valueIn(text, series), value, series)
    assert.ok(Number(valueIn(text, 'millpond_oldest_waiting_seconds{queue="mail"}')) >= 0)
    assert.doesNotMatch(text, /tenant|key-/, 'labels are queues, never groups or keys')
  },
})

webTest('calls of this process to the store, by time and error', async () => {
  const opened = await openStore('memory:', {})
  let isDown = false
  const store = meddled(opened, {
    stats: (input, next) => (isDown ? Promise.reject(new Error('down')) : next(input)),
  })
  const pond = new Millpond(store, 1000)
  const errors: unknown[] = []
  const handle = metrics(pond, { onError: (error) => errors.push(error) })
  await pond.queue('mail').push(1)
  const first = await (await handle(request())).text()
  assert.equal(valueIn(first, 'millpond_store_up{store="memory"}'), 1)
  isDown = true
  await until(async () => /millpond_store_up\{store="memory"\} 0/.test(await (await handle(request())).text()))
  const text = await (await handle(request())).text()
  assert.doesNotMatch(text, /millpond_jobs/)
  assert.ok(errors.length > 0)
  isDown = false
  await pond.close()
})

webTest('the queues with series of their own are bounded, the others summed', async ({ pond }) => {
  for (const name of ['b', 'a', 'd', 'c']) await pond.queue(name).pushMany([1, 2])
  const text = await scrape(pond, { maxQueues: 2 })
  assert.equal(valueIn(text, 'millpond_jobs{queue="a",state="waiting"}'), 2)
  assert.equal(valueIn(text, 'millpond_jobs{queue="_other",state="waiting"}'), 4)
  assert.equal(valueIn(text, 'millpond_queues'), 4)
  assert.equal(valueIn(text, 'millpond_queues_summed'), 2)
  assert.doesNotMatch(text, /queue="[cd]"/)
  assert.doesNotMatch(text, /_total\{queue="_other"/)
  assert.doesNotMatch(text, /_bucket\{queue="_other"/)
})

test('a store that cannot count has no figures that are wrong', async () => {
  await using pond = new Millpond(meddled(await openStore('memory:', {}), {}, { counts: false, workers: false }), 1000)
  await pond.queue('mail').pushMany([1, 2])
  const text = await scrape(pond)
  const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name).filter((name) => !name?.includes('store'))
  assert.deepEqual(names, ['millpond_queues', 'millpond_queues_summed', 'millpond_jobs'])
  assert.equal(valueIn(text, 'millpond_jobs{queue="mail",state="waiting"}'), 2)
  assert.doesNotMatch(text, /state="running"/)
})

test('a queue keeps its place until it is removed', () => {
  const listed = new ListedQueues(2)
  assert.deepEqual([...listed.among(['m', 'n', 'o'])], ['m', 'n'])
  assert.deepEqual([...listed.among(['a', 'm', 'n', 'o'])], ['m', 'n'])
  assert.deepEqual([...listed.among(['a', 'n', 'o'])], ['n', 'a'])
})

webTest('a scrape makes two calls to the store, whatever the backlog, and scrapers share them', async ({ pond }) => {
  await pond.queue('mail').pushMany(Array.from({ length: 5000 }, (_, n) => n))
  const calls: string[] = []
  const listener = (message: unknown) => calls.push((message as StoreOperation).name)
  subscribe('millpond:operation', listener)
  try {
    const handle = metrics(pond)
    await Promise.all([handle(request()), handle(request()), handle(request())])
  } finally {
    unsubscribe('millpond:operation', listener)
  }
  assert.deepEqual(calls.sort(), ['stats', 'workers'])
})

webTest('guard, methods and a closed pond', async ({ pond }) => {
  const guarded = metrics(pond, { guard: (given) => given.headers.has('x-ok') || new Response('no', { status: 401 }) })
  assert.equal((await guarded(request())).status, 401)
  assert.equal((await metrics(pond, { guard: () => false })(request())).status, 403)
  const posted = await metrics(pond)(request('POST'))
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  const head = await metrics(pond)(request('HEAD'))
  assert.deepEqual([head.status, await head.text()], [200, ''])
  assert.throws(() => metrics(pond, { maxQueues: -1 }), { code: 'InvalidOption' })
  const handle = metrics(pond)
  await pond.close()
  assert.equal((await handle(request())).status, 503)
})

test('label values are escaped', () => {
  const samples = [{ labels: { a: 'x"\\\n' }, value: Number.POSITIVE_INFINITY }]
  const text = exposition([{ name: 'm', type: 'gauge', help: 'H.', samples }])
  assert.equal(text, '# HELP m H.\n# TYPE m gauge\nm{a="x\\"\\\\\\n"} +Inf\n')
})
