/** Rates, latencies, and how far the rows are behind, of all variants. */
import { atLeast, atMost, type Bar } from '../../bars.ts'
import { attempts, mediansOf, type Run } from '../../chapter.ts'
import type { Column, Part, Row } from '../../report/model.ts'
import { median, percentiles } from '../../statistics.ts'
import { type Outcome, run as runOnce } from '../run.ts'
import type { Places } from '../service.ts'
import { PARTS } from '../usage.ts'
import { NAMES, type VariantName, variant } from '../variants.ts'

export const CONNECTIONS = { smoke: [64], usual: [5, 64], full: [5, 64] }
export const SECONDS = { smoke: 1, usual: 2, full: 10 }
const WARMING = { smoke: 1, usual: 1, full: 3 }
/** For the rows after the last request, in seconds. */
export const PATIENCE = { smoke: 2, usual: 2, full: 30 }
/** The promises on the rate are for this many connections, those of the write-up for the others. */
const JUDGED = 64
const PUBLISHED_CONNECTIONS = 5

/** Of the write-up, in ms and requests/s. */
const PUBLISHED: Partial<Record<VariantName, { rate: number; p95: number }>> = {
  insert: { rate: 1269, p95: 5.24 },
  inside: { rate: 4876, p95: 2.16 },
  apart: { rate: 5423, p95: 1.71 },
}

const COLUMNS: Column[] = [
  { key: 'rate', label: 'requests/s', unit: 'count', better: 'more' },
  { key: 'p50', label: 'p50', unit: 'ms', better: 'less' },
  { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
  { key: 'p99', label: 'p99', unit: 'ms', better: 'less' },
  { key: 'left', label: 'no row yet', unit: 'count', better: 'less' },
  { key: 'behind', label: 'all there after', unit: 'ms', better: 'less' },
  { key: 'rows', label: 'rows/s', unit: 'count', better: 'more' },
  { key: 'cpu', label: 'CPU a request', unit: 'µs', better: 'less' },
  { key: 'memory', label: 'server memory', unit: 'bytes', better: 'less' },
  { key: 'failed', label: 'failed', unit: 'count' },
]

export const timingOf = (run: Run) => ({
  seconds: run.pick(SECONDS),
  warming: run.pick(WARMING),
  patience: run.pick(PATIENCE),
})

export async function ratesOf(run: Run, connections: number, places: () => Promise<Places>): Promise<Part> {
  const outcomes = await attempts(
    run,
    NAMES,
    (name) => `${variant(name).title}, ${connections} connections`,
    async (name) => runOnce(name, connections, timingOf(run), await places()),
  )
  const rows = [...outcomes]
    .filter(([, runs]) => runs.length > 0)
    .map(([name]) => rowFor(run, name, connections, outcomes))
  const curves = [...outcomes].flatMap(([name, [first]]) => (first === undefined ? [] : [{ name, first }]))
  return {
    id: `rates-${connections}`,
    title: `${connections} connections`,
    about:
      'Answering early is only worth something if the rows keep up. “No row yet” counts names that were accepted and had no row yet at the last request.',
    columns: COLUMNS,
    rows,
    charts: [
      { kind: 'bars', title: 'Requests/s', column: 'rate' },
      {
        kind: 'lines',
        title: 'Backlog over time',
        summary:
          'Names that were accepted and are not in the table, by seconds since the load began, of each variant with a queue.',
        x: { label: 'seconds since the load began', unit: 's' },
        y: { label: 'names that wait for their row', unit: 'count' },
        series: curves
          .filter(({ name }) => variant(name).serve !== undefined && isQueue(name))
          .map(({ name, first }) => ({ title: variant(name).title, kind: kindOf(name), points: first.backlog })),
        marks: [{ x: run.pick(SECONDS), label: 'the load ends' }],
      },
      {
        kind: 'lines',
        title: 'Latency by percentile',
        summary: 'Latencies of each variant, from the fastest tenth to the slowest request in ten thousand.',
        x: { label: 'percentile of requests', unit: 'percentile', log: true },
        y: { label: 'ms', unit: 'ms', log: true },
        series: curves.map(({ name, first }) => ({
          title: variant(name).title,
          kind: kindOf(name),
          points: percentiles(first.curve),
        })),
      },
    ],
    notes: [
      `${mediansOf(run)} CPU is that of the server, the consumer, Redis and PostgreSQL together, without the load generator.`,
      `Rows were awaited for ${run.pick(PATIENCE)} s after the last request.`,
    ],
  }
}

export const kindOf = (name: VariantName): Row['kind'] => {
  const { ours, keepsNothing } = variant(name)
  return keepsNothing ? 'ceiling' : ours || name === 'grouped' ? 'ours' : 'plain'
}

/** Without a queue, nothing waits for its row. */
const isQueue = (name: VariantName) => name === 'inside' || variant(name).consume !== undefined

function rowFor(
  run: Run,
  name: VariantName,
  connections: number,
  outcomes: ReadonlyMap<VariantName, readonly Outcome[]>,
): Row {
  const runs = outcomes.get(name) ?? []
  const { title, keepsNothing, least, within } = variant(name)
  const middle = (of: (each: Outcome) => number) => median(runs.map(of))
  const rate = middle((each) => each.rate)
  const nothing = median((outcomes.get('nothing') ?? []).map((each) => each.rate))
  const ofNothing = rate / nothing
  const figures: Row['figures'] = { rate, failed: Math.max(...runs.map(({ failed }) => failed)) }
  for (const figure of ['p50', 'p95', 'p99'] as const) figures[figure] = middle((each) => each[figure])
  const cpu = runs.flatMap((each) => each.cpu ?? [])
  if (cpu.length > 0) {
    const parts = PARTS.filter((part) => part !== 'generator')
    figures.cpu = median(cpu.map((used) => parts.reduce((sum, part) => sum + used[part], 0)))
  }
  const memory = middle((each) => each.memory)
  if (Number.isFinite(memory)) figures.memory = memory
  const bars: Bar[] = [atMost(Number(figures.failed), 0, ' failed')]
  if (!keepsNothing) {
    figures.left = middle((each) => each.accepted - each.rowsAtEnd)
    const behind = middle((each) => each.behind)
    figures.behind = Number.isFinite(behind) ? behind : `> ${run.pick(PATIENCE)} s`
    figures.rows = middle((each) => each.rowsAtEnd / (run.pick(SECONDS) + run.pick(WARMING)))
    if (least !== undefined && connections === JUDGED && Number.isFinite(nothing)) {
      bars.push(atLeast(ofNothing, least, ' × no-op'))
    }
    if (within !== undefined)
      bars.push(atMost(Math.max(...runs.map((each) => each.behind)) / 1000, within / 1000, ' s behind'))
  }
  const published = connections === PUBLISHED_CONNECTIONS ? PUBLISHED[name] : undefined
  return { variant: name, title, kind: kindOf(name), figures, bars, ...(published === undefined ? {} : { published }) }
}
