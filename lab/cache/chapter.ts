/** E3 of the report: compact values in Redis. */
import { atLeast, atMost, type Bar } from '../bars.ts'
import { attempt, attempts, type ChapterPlan } from '../chapter.ts'
import { generator } from '../load/load.ts'
import {
  type Column,
  type Finding,
  type LineChart,
  numberIn,
  type Part,
  partOf,
  type Row,
  rowOf,
} from '../report/model.ts'
import { shown } from '../report/units.ts'
import { median } from '../statistics.ts'
import { large } from './large.ts'
import { type Outcome, run as runOnce } from './run.ts'
import { NAMES, type VariantName, variant } from './variants.ts'

const SIZES = {
  smoke: [10],
  usual: [1, 100, 1000, 10_000],
  full: [1, 10, 100, 1000, 10_000, 100_000, 1_000_000],
}
const SECONDS = { smoke: 1, usual: 1, full: 10 }
/** Variants that tell nothing new at a first look. */
const USUAL: readonly VariantName[] = ['constant', 'string', 'json', 'flat', 'msgpack', 'millpond', 'distant']
/** The bars against MessagePack are for this many items. */
const JUDGED = 1000
const TIMES = 10
const MEMORY = 0.5

const KIB = 1024
const MIB = KIB ** 2
/** Of the write-up: requests in its run of ten seconds, and Redis' memory. */
const PUBLISHED: Record<number, Partial<Record<VariantName, { requests: number; redis: number }>>> = {
  1: { json: { requests: 101_000, redis: 128 }, msgpack: { requests: 101_000, redis: 72 } },
  10: { json: { requests: 87_000, redis: 816 }, msgpack: { requests: 96_000, redis: 208 } },
  100: { json: { requests: 52_000, redis: 7 * KIB }, msgpack: { requests: 60_000, redis: 2 * KIB } },
  1000: { json: { requests: 8000, redis: 64 * KIB }, msgpack: { requests: 16_000, redis: 16 * KIB } },
  10000: { json: { requests: 850, redis: 768 * KIB }, msgpack: { requests: 1000, redis: 160 * KIB } },
  100000: { json: { requests: 65, redis: 7 * MIB }, msgpack: { requests: 138, redis: 2 * MIB } },
  1000000: { json: { requests: 20, redis: 80 * MIB }, msgpack: { requests: 25, redis: 20 * MIB } },
}
const PUBLISHED_SECONDS = 10

const COLUMNS: Column[] = [
  { key: 'rate', label: 'requests/s', unit: 'count', better: 'more' },
  { key: 'p50', label: 'p50', unit: 'ms', better: 'less' },
  { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
  { key: 'p99', label: 'p99', unit: 'ms', better: 'less' },
  { key: 'redis', label: 'in Redis', unit: 'bytes', better: 'less' },
  { key: 'memory', label: 'server memory', unit: 'bytes', better: 'less' },
  { key: 'failed', label: 'failed', unit: 'count' },
]

export const cache: ChapterPlan = {
  id: 'E3',
  title: 'Compact values in Redis',
  short: 'Cache',
  question: 'A service answers with a value that it keeps in Redis. What do its size and its encoding cost?',
  takes: { smoke: 20, usual: 85, full: 1900 },
  published: [
    {
      title: 'Published, in runs of ten seconds',
      head: ['items', 'requests, JSON', 'MessagePack', 'Redis, JSON', 'MessagePack '],
      rows: Object.entries(PUBLISHED).map(([items, { json, msgpack }]) => [
        Number(items).toLocaleString('en'),
        ...[json?.requests, msgpack?.requests].map((each) => (each ?? 0).toLocaleString('en')),
        ...[json?.redis, msgpack?.redis].map((each) => shown(each, 'bytes')),
      ]),
    },
  ],
  setUp: ({ pick }) => [
    'POST / on Fastify returns an array of n items {index, createdAt, nested: {isEven}} from Redis, or makes and stores it.',
    `10 connections in a closed loop for ${pick(SECONDS)} s after 1 s of warming up, ${generator}.`,
    'Each run has a fresh process and an empty Redis. Two answers are compared with what they should be first.',
  ],
  async *measure(run) {
    const redis = await run.stage.place('redis')
    const all = new Map<number, Map<VariantName, Outcome[]>>()
    for (const count of run.pick(SIZES)) {
      const names = NAMES.filter(
        (name) =>
          count <= (variant(name).most ?? Number.POSITIVE_INFINITY) && (run.size === 'full' || USUAL.includes(name)),
      )
      const about = (name: VariantName) => `${count.toLocaleString('en')} items, ${variant(name).title}`
      const outcomes = await attempts(run, names, about, async (name) =>
        runOnce(name, count, 10, run.pick(SECONDS), await redis.fresh()),
      )
      all.set(count, outcomes)
    }
    yield curvesOf(all)
    for (const [count, outcomes] of all) yield tableOf(count, outcomes)
    if (run.size !== 'full') return
    const value = await attempt(run, 'a value of 600 MB', async () => large(await redis.fresh()))
    if (value !== undefined) yield largeOf(value)
  },
  findings,
}

type Outcomes = ReadonlyMap<VariantName, readonly Outcome[]>
type Figure = Exclude<keyof Outcome, 'curve'>
const kindOf = (name: VariantName): Row['kind'] => {
  const { plain, ceiling } = variant(name)
  return ceiling ? 'ceiling' : plain ? 'plain' : 'ours'
}

function curvesOf(all: ReadonlyMap<number, Outcomes>): Part {
  const series = (figure: Figure): LineChart['series'] =>
    NAMES.flatMap((name) => {
      if (figure === 'redis' && kindOf(name) === 'ceiling') return []
      const points = [...all].flatMap(([count, outcomes]): [number, number][] => {
        const runs = outcomes.get(name) ?? []
        return runs.length === 0 ? [] : [[count, median(runs.map((each) => each[figure]))]]
      })
      return points.length === 0 ? [] : [{ title: variant(name).title, kind: kindOf(name), points }]
    })
  const x = { label: 'items', unit: 'count', log: true } as const
  return {
    id: 'sizes',
    title: 'From one item to many',
    about: 'What a request costs grows with the value, unless its bytes are ready.',
    columns: [],
    rows: [],
    notes: [],
    charts: [
      {
        kind: 'lines',
        title: 'Requests/s by items',
        summary: 'Requests per second of each variant as the value grows. The tables below have the figures.',
        x,
        y: { label: 'requests/s', unit: 'count', log: true },
        series: series('rate'),
      },
      {
        kind: 'lines',
        title: 'Memory in Redis by items',
        summary: 'What the value takes in Redis in each encoding as it grows. The tables below have the figures.',
        x,
        y: { label: 'bytes', unit: 'bytes', log: true },
        series: series('redis'),
      },
    ],
  }
}

function tableOf(count: number, outcomes: Outcomes): Part {
  const rows = [...outcomes]
    .filter(([, runs]) => runs.length > 0)
    .map(([name, runs]): Row => {
      const middle = (figure: Figure) => median(runs.map((each) => each[figure]))
      const kind = kindOf(name)
      const figures: Row['figures'] = {}
      for (const figure of ['rate', 'memory'] as const) figures[figure] = middle(figure)
      // Without a single answer there is no latency.
      if (middle('rate') > 0) for (const figure of ['p50', 'p95', 'p99'] as const) figures[figure] = middle(figure)
      if (kind !== 'ceiling') figures.redis = middle('redis')
      figures.failed = Math.max(...runs.map(({ failed }) => failed))
      const known = PUBLISHED[count]?.[name]
      const published =
        known === undefined ? {} : { published: { rate: known.requests / PUBLISHED_SECONDS, redis: known.redis } }
      return {
        variant: name,
        title: variant(name).title,
        kind,
        figures,
        bars: barsOf(name, count, outcomes),
        ...published,
      }
    })
  return {
    id: `items-${count}`,
    title: `${count.toLocaleString('en')} ${count === 1 ? 'item' : 'items'}`,
    about: '',
    columns: COLUMNS,
    rows,
    charts:
      count === JUDGED
        ? [
            { kind: 'bars', title: `Requests/s, ${count.toLocaleString('en')} items`, column: 'rate' },
            { kind: 'bars', title: `Memory in Redis, ${count.toLocaleString('en')} items`, column: 'redis' },
          ]
        : [],
    notes: [],
  }
}

function barsOf(name: VariantName, count: number, outcomes: Outcomes): Bar[] {
  const runs = outcomes.get(name) ?? []
  const bars = [atMost(Math.max(...runs.map(({ wrong }) => wrong)), 0, ' wrong')]
  if (name !== 'millpond') return bars
  const rate = (each: VariantName) => median((outcomes.get(each) ?? []).map((found) => found.rate))
  const plain = [...outcomes.keys()].filter((each) => variant(each).plain && Number.isFinite(rate(each)))
  if (plain.length > 0) bars.push(atLeast(rate(name) / Math.max(...plain.map(rate)), 1, ' × the best plain'))
  const packed = outcomes.get('msgpack') ?? []
  if (packed.length === 0 || count !== JUDGED) return bars
  const redis = (found: readonly Outcome[]) => median(found.map((each) => each.redis))
  bars.push(atLeast(rate(name) / rate('msgpack'), TIMES, ' × MessagePack'))
  bars.push(atMost(redis(runs) / redis(packed), MEMORY, ' × its memory'))
  return bars
}

function largeOf({ put, get, intact }: Awaited<ReturnType<typeof large>>): Part {
  const row = (title: string, { seconds, peak, before, bytes }: typeof put): Row => ({
    variant: title,
    title,
    kind: 'ours',
    figures: { bytes, seconds, before, peak },
    bars: [atMost(intact ? 0 : 1, 0, ' wrong')],
  })
  return {
    id: 'large',
    title: 'A value that no JSON string can hold',
    about:
      'A JSON string over about 512 MB cannot exist in V8 (ERR_STRING_TOO_LONG), nor can one string of Redis. Millpond stores the value in pieces.',
    columns: [
      { key: 'bytes', label: 'value', unit: 'bytes' },
      { key: 'seconds', label: 'took', unit: 's' },
      { key: 'before', label: 'memory before', unit: 'bytes' },
      { key: 'peak', label: 'at most', unit: 'bytes' },
    ],
    rows: [row('Millpond, put', put), row('Millpond, got', get)],
    charts: [],
    notes: [],
  }
}

function findings(parts: readonly Part[]): Finding[] {
  const id = `items-${JUDGED}`
  const part = partOf(parts, id)
  const [json, packed, ours] = [rowOf(part, 'json'), rowOf(part, 'msgpack'), rowOf(part, 'millpond')]
  const [jsonRate, packedRate, rate] = [json, packed, ours].map((row) => numberIn(row, 'rate'))
  const [jsonBytes, packedBytes, bytes] = [json, packed, ours].map((row) => numberIn(row, 'redis'))
  const found: Finding[] = []
  if (jsonRate !== undefined && jsonBytes !== undefined) {
    found.push({
      verdict: 'falls',
      figure: shown(jsonRate, 'per second'),
      text: `is what is left with ${JUDGED.toLocaleString('en')} items in JSON, which is parsed and made again for each request, and takes ${shown(jsonBytes, 'bytes')} in Redis.`,
      part: id,
    })
  }
  if (packedRate !== undefined && packedBytes !== undefined && rate !== undefined && bytes !== undefined) {
    found.push({
      verdict: rate / packedRate >= TIMES ? 'holds' : 'missed',
      figure: `${shown(rate / packedRate, 'times')} the requests`,
      text: `of MessagePack with shared structures: ${shown(rate, 'per second')}, from ready bytes.`,
      part: id,
    })
    found.push({
      verdict: bytes / packedBytes <= MEMORY ? 'holds' : 'missed',
      figure: `${shown(bytes / packedBytes, 'share')} of the memory`,
      text: `that MessagePack takes in Redis: ${shown(bytes, 'bytes')} instead of ${shown(packedBytes, 'bytes')}; JSON takes ${shown(jsonBytes, 'bytes')}.`,
      part: id,
    })
  }
  return found
}
