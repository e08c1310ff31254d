/** The metrics, the rules and the board of the package on a real Prometheus. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Millpond } from '../../src/index.ts'
import { serve } from '../../src/serve/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { observed } from '../../src/stores/telemetry.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { bucketOf } from '../../src/values/figures/histogram.ts'
import { metrics } from '../../src/web/metrics.ts'
import { toNode } from '../../src/web/node.ts'
import { type PrometheusPrograms, prometheusPrograms } from '../servers/programs.ts'
import { type PrometheusServer, startPrometheus } from '../servers/prometheus.ts'
import { after } from '../support/cleaning.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { until, untilCalm } from '../support/until.ts'
import { listening, type WebHandler } from '../web/serving.ts'

const RULES = fileURLToPath(new URL('../../monitoring/prometheus-rules.yml', import.meta.url))
const BOARD = new URL('../../monitoring/grafana.json', import.meta.url)
const TOKEN = 'a-token-of-the-tests'

let programs: PrometheusPrograms | undefined
let missing = ''
try {
  programs = await prometheusPrograms()
} catch (error) {
  missing = String(error)
}
const skip = missing === '' ? false : missing

/** What promtool says, and its exit code. */
function promtool(args: readonly string[], input = ''): [number | null, string] {
  const { status, stdout, stderr } = spawnSync(programs?.tool ?? '', args, { input, encoding: 'utf8' })
  return [status, `${stdout}${stderr}`]
}

/** The same numbers in every run: log-normal, around 50 ms. */
function waits(count: number): number[] {
  let seed = 42
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return (seed + 1) / (2 ** 31 + 1)
  }
  return Array.from({ length: count }, () => {
    return 50 * Math.exp(1.5 * Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random()))
  })
}

function bucketsOf(times: readonly number[]): Record<number, number> {
  const buckets: Record<number, number> = {}
  for (const ms of times) buckets[bucketOf(ms)] = (buckets[bucketOf(ms)] ?? 0) + 1
  return buckets
}

test('metrics, rules and board', { skip, timeout: 120_000 }, async (t) => {
  let ahead = 0
  let isAway = false
  const opened = await openStore('memory:', { clock: () => Date.now() + ahead })
  const away = () => Promise.reject(new MillpondError('StoreUnavailable', 'the store is away'))
  const store = observed(meddled(opened, { find: (input, next) => (isAway ? away() : next(input)) }))
  const pond = new Millpond(store, 1000)
  after(t, () => pond.close({ timeout: 100 }))
  const meddling: Meddling = { stats: away }
  const broken = new Millpond(meddled(await openStore('memory:', {}), meddling), 1000)
  after(t, () => {
    delete meddling.stats
    return broken.close()
  })
  const service = await serve('memory:', { tokens: [TOKEN] })
  after(t, () => service.close({ timeout: 100 }))

  const started = async (handler: WebHandler) => {
    const server = createServer(toNode(handler))
    after(t, () => server.closeAllConnections())
    after(t, () => void server.close())
    return (await listening(server)).slice('http://'.length)
  }
  const mail = pond.queue<number>('mail', { limits: { running: 5, group: { running: 1 } }, retry: { attempts: 1 } })
  pond.on('dead', () => {})
  await mail.push(0)
  const handle = metrics(pond)
  const jobs = {
    millpond: [await started(handle), await started(service.handle)],
    broken: [await started(metrics(broken, { onError: () => {} }))],
  }
  const prometheus = await startPrometheus({ jobs, token: TOKEN, rules: [RULES] })
  after(t, () => prometheus.stop())
  const text = await (await handle(new Request('http://localhost/metrics'))).text()

  await t.test('promtool has nothing to say on the metrics and the rules', () => {
    assert.deepEqual(promtool(['check', 'metrics'], text), [0, ''])
    const [status, words] = promtool(['check', 'rules', RULES])
    assert.equal(status, 0, words)
  })

  await t.test('it scrapes the handler, and the service with its token', async () => {
    await until(async () => (await prometheus.query('up == 1')).length === 3)
    await has(prometheus, 'millpond_job_wait_seconds_count{queue="mail"}', 0)
  })

  await t.test('its p95 is ours and that of the raw times, within the width of a bucket', async () => {
    const times = waits(2000)
    for (const part of [times.slice(0, 500), times.slice(500)]) {
      const slice = { queue: 'mail', priority: 4, metric: 'wait', buckets: bucketsOf(part) } as const
      await store.operations.record({ slices: [slice] })
    }
    await has(prometheus, 'millpond_job_wait_seconds_count{queue="mail"}', 2000)
    const query =
      'histogram_quantile(0.95, max by (queue, le) (rate(millpond_job_wait_seconds_bucket{queue="mail"}[5m])))'
    const [told] = await prometheus.query(query)
    const { wait } = await mail.stats()
    const raw = times.sort((a, b) => a - b)[Math.ceil(0.95 * times.length) - 1]
    assert.ok(told !== undefined && wait.p95 !== undefined && raw !== undefined)
    assert.ok(Math.abs(wait.p95 / raw - 1) < 0.045, `ours ${wait.p95} ms, raw ${raw} ms`)
    const upper = 2 ** Math.ceil(Math.log2(raw * 1000))
    const [least, most] = [upper / 2, upper]
    const theirs = told.value * 1e6
    assert.ok(
      theirs > least && theirs <= most,
      `theirs ${theirs} µs is not in the bucket ${least} to ${most} of ${raw} ms`,
    )
  })

  await t.test('every rule finds what it is for, and every query of the board has an answer', async () => {
    const slice = {
      queue: 'mail',
      priority: 4,
      metric: 'wait',
      buckets: bucketsOf(Array(50_000).fill(200_000)),
    } as const
    const run = { ...slice, metric: 'run' } as const
    await store.operations.record({ slices: [slice, run] })
    const worker = mail.work(() => {
      throw new Error('no')
    })
    await until(async () => (await mail.stats()).counts.dead === 1)
    await worker.close()
    await mail.push(1, { group: 'tenant' })
    isAway = true
    await assert.rejects(pond.job('019b76da-a800-7000-8000-000000000001'), { code: 'StoreUnavailable' })
    ahead = 700_000
    const { groups } = await prometheus.ask('rules')
    assert.ok(Array.isArray(groups))
    const rules: Rule[] = groups.flatMap((group) => group.rules)
    assert.equal(rules.length, 6)
    for (const { name, query, lastError = '', annotations } of rules) {
      assert.equal(lastError, '', name)
      await found(prometheus, query, namesIn(JSON.stringify(annotations), /\$labels\.(\w+)/g))
    }
    const board: Board = JSON.parse(readFileSync(BOARD, 'utf8'))
    const targets = board.panels.flatMap((panel) => panel.targets)
    assert.ok(targets.length > 20)
    for (const { expr, legendFormat = '' } of targets)
      await found(prometheus, filled(expr), namesIn(legendFormat, /{{(\w+)}}/g))
    const lists = board.templating.list.filter(({ type }) => type === 'query')
    assert.equal(lists.length, 2)
    for (const { query } of lists) {
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? []
      await found(prometheus, filled(selector), [label])
    }
  })
})

interface Rule {
  name: string
  query: string
  lastError?: string
  annotations: object
}

interface Board {
  panels: { targets: { expr: string; legendFormat?: string }[] }[]
  templating: { list: { type: string; query: string }[] }
}

const VALUES: Readonly<Record<string, string>> = { $job: '.*', $queue: '.*', $__rate_interval: '5m' }
const filled = (query: string) => query.replaceAll(/\$\w+/g, (name) => VALUES[name] ?? name)
const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name)

const has = (prometheus: PrometheusServer, query: string, value: number) =>
  untilCalm(async () => (await prometheus.query(query))[0]?.value === value, `${query} is ${value}`)

/** @param labels which the answer has: texts are made of them */
const found = (prometheus: PrometheusServer, query: string, labels: readonly string[]) =>
  until(
    async () => {
      const results = await prometheus.query(query)
      return results.some(({ metric }) => labels.every((label) => metric[label] !== undefined))
    },
    `${query} has an answer with ${labels.join(', ') || 'any labels'}`,
  )
