/** E4 of the report: a slow upstream behind a thousand callers. */
import { atLeast, atMost } from '../bars.ts'
import { attempts, type ChapterPlan, mediansOf, type Run } from '../chapter.ts'
import { generator } from '../load/load.ts'
import { type Column, type Finding, numberIn, type Part, partOf, type Row, rowOf } from '../report/model.ts'
import { shown } from '../report/units.ts'
import { median, percentiles } from '../statistics.ts'
import { type Outcome, run as runOnce } from './run.ts'
import { ceilingOf, NAMES, type VariantName, variant } from './variants.ts'

const CONNECTIONS = { smoke: 50, usual: 1000, full: 1000 }
const SECONDS = { smoke: 1, usual: 3, full: 10 }
const OF_CEILING = 0.9
const OF_CONSTANT = 0.8

/** Of the write-up. */
const PUBLISHED: Partial<Record<VariantName, { rate: number }>> = { plain: { rate: 245 }, coalesce: { rate: 2101 } }

const COLUMNS: Column[] = [
  { key: 'rate', label: 'requests/s', unit: 'count', better: 'more' },
  { key: 'ofConstant', label: 'of constant', unit: 'share' },
  { key: 'ofCeiling', label: 'of ceiling', unit: 'share' },
  { key: 'p50', label: 'p50', unit: 'ms', better: 'less' },
  { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
  { key: 'p99', label: 'p99', unit: 'ms', better: 'less' },
  { key: 'calls', label: 'upstream calls', unit: 'count', better: 'less' },
  { key: 'atOnce', label: 'at once', unit: 'count', better: 'less' },
  { key: 'cpu', label: 'CPU a request', unit: 'µs', better: 'less' },
  { key: 'memory', label: 'memory', unit: 'bytes', better: 'less' },
  { key: 'failed', label: 'failed', unit: 'count' },
]

export const coalesce: ChapterPlan = {
  id: 'E4',
  title: 'One flight for a thousand callers',
  short: 'Flights',
  question: 'A service asks a slow upstream for each request. What happens when a thousand clients ask at once?',
  takes: { smoke: 35, usual: 75, full: 460 },
  published: [
    {
      title: 'Published',
      head: ['variant', 'requests/s'],
      rows: [
        ['a call for each request', '245'],
        ['callers queued behind the one call in flight', '2,101'],
      ],
      note: 'Over half the answers of both runs were counted as failed.',
    },
  ],
  setUp: ({ pick }) => [
    `GET / on Express asks an upstream that takes about 200 ms, and returns its JSON.`,
    `${pick(CONNECTIONS)} connections in a closed loop for ${pick(SECONDS)} s after warming up, ${generator}.`,
    'With two servers, each has half of the connections, and they share their flights over a store.',
  ],
  async *measure(run) {
    const connections = run.pick(CONNECTIONS)
    const timing = { seconds: run.pick(SECONDS), warming: 1 }
    const outcomes = await attempts(
      run,
      NAMES,
      (name) => variant(name).title,
      async (name) => {
        const { store } = variant(name)
        const url = store === undefined ? '' : await (await run.stage.place(store)).fresh()
        return runOnce(name, connections, timing, url)
      },
    )
    yield ratesOf(run, connections, outcomes)
  },
  findings,
}

type Outcomes = ReadonlyMap<VariantName, readonly Outcome[]>

function ratesOf(run: Run, connections: number, outcomes: Outcomes): Part {
  const rows = [...outcomes].filter(([, runs]) => runs.length > 0).map(([name]) => rowFor(name, connections, outcomes))
  return {
    id: 'rates',
    title: `${connections.toLocaleString('en')} connections`,
    about:
      'In a closed loop everyone waits for the flight and then for the answers to all: without a ttl, connections ÷ (flight time + connections ÷ constant rate) is the most there is. Only reusing an answer for a moment (ttl) goes past it.',
    columns: COLUMNS,
    rows,
    charts: [
      { kind: 'bars', title: 'Requests/s', column: 'rate' },
      { kind: 'bars', title: 'Calls of the upstream', column: 'calls', log: true },
      {
        kind: 'lines',
        title: 'Latency by percentile',
        summary: 'Latencies of each variant, from the fastest tenth to the slowest request in ten thousand.',
        x: { label: 'percentile of requests', unit: 'percentile', log: true },
        y: { label: 'ms', unit: 'ms', log: true },
        series: [...outcomes].flatMap(([name, [first]]) =>
          first === undefined || variant(name).processes === 2
            ? []
            : [{ title: variant(name).title, kind: kindOf(name), points: percentiles(first.curve) }],
        ),
      },
    ],
    notes: [mediansOf(run)],
  }
}

const kindOf = (name: VariantName): Row['kind'] =>
  name === 'plain' ? 'plain' : variant(name).flies ? 'ours' : 'ceiling'

function rowFor(name: VariantName, connections: number, outcomes: Outcomes): Row {
  const runs = outcomes.get(name) ?? []
  const { title, processes, flies, reuses } = variant(name)
  const constant = median((outcomes.get(ceilingOf(processes)) ?? []).map(({ rate }) => rate))
  const middle = (figure: Exclude<keyof Outcome, 'curve'>) => median(runs.map((each) => each[figure]))
  const most = (figure: Exclude<keyof Outcome, 'curve'>) => Math.max(...runs.map((each) => each[figure]))
  const rate = middle('rate')
  const flight = middle('flight')
  const figures: Row['figures'] = {
    processes,
    rate,
    cpu: middle('cpu'),
    memory: middle('memory'),
    failed: most('failed'),
  }
  for (const figure of ['p50', 'p95', 'p99'] as const) figures[figure] = middle(figure)
  const bars = [atMost(most('failed'), 0, ' failed')]
  if (kindOf(name) !== 'ceiling') {
    figures.calls = middle('calls')
    figures.atOnce = most('atOnce')
    if (Number.isFinite(constant)) figures.ofConstant = rate / constant
  }
  if (flies) {
    bars.push(atMost(most('atOnce'), 1, ' at once'))
    if (reuses && Number.isFinite(constant)) bars.push(atLeast(rate / constant, OF_CONSTANT, ' × constant'))
    if (!reuses && Number.isFinite(constant)) {
      const ofCeiling = rate / (connections / (flight / 1000 + connections / constant))
      figures.ofCeiling = ofCeiling
      bars.push(atLeast(ofCeiling, OF_CEILING, ' × ceiling'))
    }
  }
  const published = PUBLISHED[name]
  return { variant: name, title, kind: kindOf(name), figures, bars, ...(published === undefined ? {} : { published }) }
}

function findings(parts: readonly Part[]): Finding[] {
  const part = partOf(parts, 'rates')
  const [plain, one, ttl] = [rowOf(part, 'plain'), rowOf(part, 'coalesce'), rowOf(part, 'ttl')]
  const [plainRate, ttlRate] = [numberIn(plain, 'rate'), numberIn(ttl, 'rate')]
  const found: Finding[] = []
  if (plain !== undefined && plainRate !== undefined) {
    found.push({
      verdict: 'falls',
      figure: `${shown(numberIn(plain, 'atOnce'), 'count')} calls at once`,
      text: `hit the upstream when each request makes its own: ${shown(numberIn(plain, 'calls'), 'count')} calls for ${shown(plainRate, 'count')} answers/s.`,
      part: 'rates',
    })
  }
  if (one !== undefined) {
    found.push({
      verdict: (numberIn(one, 'atOnce') ?? 0) <= 1 ? 'holds' : 'missed',
      figure: `${shown(numberIn(one, 'calls'), 'count')} calls`,
      text: `in all, never more than ${shown(numberIn(one, 'atOnce'), 'count')} at once, answer ${shown(numberIn(one, 'rate'), 'count')} requests/s with coalesce.`,
      part: 'rates',
    })
  }
  if (ttlRate !== undefined && plainRate !== undefined) {
    found.push({
      verdict: ttlRate > plainRate ? 'holds' : 'missed',
      figure: `${shown(ttlRate / plainRate, 'times')} the requests`,
      text: `of the plain handler, ${shown(ttlRate, 'count')}/s, once an answer may be reused for a second.`,
      part: 'rates',
    })
  }
  return found
}
