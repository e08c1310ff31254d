/** Several servers behind nginx, and several consumers. */
import { atMost } from '../../bars.ts'
import { attempt, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { median } from '../../statistics.ts'
import { nginxVersion } from '../nginx.ts'
import { type Crew, type Outcome, run as runOnce } from '../run.ts'
import type { Places } from '../service.ts'
import { type VariantName, variant } from '../variants.ts'
import { kindOf, PATIENCE, timingOf } from './rates.ts'

const CONNECTIONS = 64
const ALL: readonly Crew[] = [
  { servers: 1, consumers: 1 },
  { servers: 2, consumers: 1 },
  { servers: 2, consumers: 2 },
]
const BOTH: readonly Crew[] = [ALL[0], ALL[2]].filter((crew) => crew !== undefined)
const CREWS: Partial<Record<VariantName, Record<Run['size'], readonly Crew[]>>> = {
  apart: { smoke: [], usual: BOTH, full: ALL },
  redis: { smoke: BOTH.slice(1), usual: ALL, full: ALL },
  postgres: { smoke: [], usual: BOTH, full: ALL },
  sqlite: { smoke: [], usual: BOTH.slice(1), full: ALL },
}

export async function crews(run: Run, places: () => Promise<Places>): Promise<Part> {
  const version = nginxVersion()
  if (version !== undefined) run.uses('nginx', version)
  const rows: Row[] = []
  for (const name of ['apart', 'redis', 'postgres', 'sqlite'] as const) {
    if (!run.wants(name)) continue
    for (const crew of CREWS[name]?.[run.size] ?? []) {
      const outcomes: Outcome[] = []
      for (let round = 0; round < run.runs; round++) {
        const about = `${variant(name).title}, ${words(crew)}`
        const outcome = await attempt(run, about, async () =>
          runOnce(name, CONNECTIONS, timingOf(run), await places(), crew),
        )
        if (outcome !== undefined) outcomes.push(outcome)
      }
      if (outcomes.length > 0) rows.push(rowFor(run, name, crew, outcomes))
    }
  }
  return {
    id: 'crews',
    title: `1 and 2 servers behind nginx, 1 and 2 consumers, ${CONNECTIONS} connections`,
    about:
      'Two servers share the load behind nginx, and two consumers share the queue. On a machine with two cores this shows that nothing is lost or doubled, not that it is faster.',
    columns: [
      { key: 'servers', label: 'servers', unit: 'count' },
      { key: 'consumers', label: 'consumers', unit: 'count' },
      { key: 'rate', label: 'requests/s', unit: 'count', better: 'more' },
      { key: 'p50', label: 'p50', unit: 'ms', better: 'less' },
      { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
      { key: 'p99', label: 'p99', unit: 'ms', better: 'less' },
      { key: 'left', label: 'no row yet', unit: 'count', better: 'less' },
      { key: 'behind', label: 'all there after', unit: 'ms', better: 'less' },
      { key: 'twice', label: 'twice', unit: 'count' },
      { key: 'failed', label: 'failed', unit: 'count' },
    ],
    rows,
    charts: [],
    notes: [],
  }
}

const words = ({ servers, consumers }: Crew): string =>
  `${servers} ${servers === 1 ? 'server' : 'servers'}, ${consumers} ${consumers === 1 ? 'consumer' : 'consumers'}`

function rowFor(run: Run, name: VariantName, crew: Crew, runs: readonly Outcome[]): Row {
  const middle = (of: (each: Outcome) => number) => median(runs.map(of))
  const most = (of: (each: Outcome) => number) => Math.max(...runs.map(of))
  const behind = middle((each) => each.behind)
  const twice = most(({ doubled }) => doubled)
  const failed = most((each) => each.failed)
  return {
    variant: `${name}-${crew.servers}-${crew.consumers}`,
    title: variant(name).title,
    kind: kindOf(name),
    figures: {
      servers: crew.servers,
      consumers: crew.consumers,
      rate: middle((each) => each.rate),
      p50: middle((each) => each.p50),
      p95: middle((each) => each.p95),
      p99: middle((each) => each.p99),
      left: middle((each) => each.accepted - each.rowsAtEnd),
      behind: Number.isFinite(behind) ? behind : `> ${run.pick(PATIENCE)} s`,
      twice,
      failed,
    },
    bars: [atMost(failed, 0, ' failed'), atMost(twice, 0, ' twice')],
  }
}
