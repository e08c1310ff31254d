/** Experiment E1: `POST /users` writes a row, at once or behind a queue. */
import { atLeast, atMost, type Bar, compact } from '../bars.ts'
import type { Experiment, Row, Table } from '../experiment.ts'
import { on, some, whole, wholes } from '../flags.ts'
import { generator } from '../load/load.ts'
import { median } from '../statistics.ts'
import { inTurn } from '../turns.ts'
import { placesOf } from './places.ts'
import { type Outcome, run } from './run.ts'
import { PARTS } from './usage.ts'
import { NAMES, type VariantName, variant } from './variants.ts'

/** The bars on the rate are for this many connections. */
const JUDGED = 64

const flags = {
  only: some(NAMES),
  runs: whole('of each variant at each number of connections, on fresh servers', '3', '1'),
  seconds: whole('of load', '10', '2'),
  warming: whole('seconds of load before it', '3'),
  connections: wholes('at once', '5,64'),
  patience: whole('seconds to wait for the rows after the last request', '30', '5'),
  fsync: on('Redis with appendfsync always; unless given, without persistence'),
}

export const users: Experiment<typeof flags> = {
  id: 'E1',
  flags,
  about: ({ seconds, warming, runs }) =>
    `POST /users with a random name, ${seconds} s after ${warming} s of warming up, ${generator}.
Medians of ${runs} runs, each on fresh servers, variants in turn; missing, twice and failed: the most of any run.`,
  async *measure({ only, runs, connections, fsync, ...timing }, stage) {
    const places = await placesOf(stage, fsync)
    for (const count of connections) {
      const outcomes = await inTurn(
        only,
        runs,
        async (name) => run(name, count, timing, await places()),
        (name) => `${name}, ${count} connections`,
      )
      yield ratesOf(count, timing.patience, outcomes)
      const cpu = cpuOf(count, outcomes)
      if (cpu !== undefined) yield cpu
    }
  },
}

type Outcomes = ReadonlyMap<VariantName, readonly Outcome[]>
type Figure = Exclude<keyof Outcome, 'cpu' | 'curve' | 'backlog'>

const HEAD = [
  ...['', 'req/s', '× no-op', 'p50 ms', 'p95 ms', 'p99 ms', 'accepted', 'rows at the end of the load'],
  ...['all there after', 'missing', 'twice', 'failed'],
]

function ratesOf(connections: number, patience: number, outcomes: Outcomes): Table {
  const ceilings = outcomes.get('nothing')
  const rows = [...outcomes].map(([name, runs]): Row => {
    const { title, least, within, keepsNothing } = variant(name)
    const shares = ceilings === undefined ? [] : runs.map(({ rate }, at) => rate / (ceilings[at]?.rate ?? Number.NaN))
    const middle = (figure: Figure) => median(runs.map((each) => each[figure]))
    const most = (figure: Figure) => Math.max(...runs.map((each) => each[figure]))
    const bars: Bar[] = []
    if (least !== undefined && connections === JUDGED && shares.length > 0)
      bars.push(atLeast(median(shares), least, ' × no-op'))
    if (within !== undefined) bars.push(atMost(most('behind'), within, ' ms behind'))
    bars.push(atMost(most('failed'), 0, ' failed'))
    if (within !== undefined || (least !== undefined && !keepsNothing)) bars.push(atMost(most('missing'), 0, ' lost'))
    const behind = Number.isFinite(middle('behind')) ? `${compact(middle('behind'))} ms` : `> ${patience} s`
    const stored = [compact(middle('rowsAtEnd')), behind, compact(most('missing')), compact(most('doubled'))]
    const cells = [
      title,
      `**${compact(middle('rate'))}**`,
      shares.length > 0 ? compact(median(shares)) : '',
      ...(['p50', 'p95', 'p99', 'accepted'] as const).map((figure) => compact(middle(figure))),
      ...(keepsNothing ? ['', '', '', ''] : stored),
      compact(most('failed')),
    ]
    return { cells, bars, figures: { variant: name, connections, runs, shares } }
  })
  return { title: `${connections} connections`, head: HEAD, rows }
}

/** Where the cores' time went; undefined where nobody tells. */
function cpuOf(connections: number, outcomes: Outcomes): Table | undefined {
  const rows: Row[] = []
  for (const [name, runs] of outcomes) {
    const used = runs.flatMap(({ cpu }) => cpu ?? [])
    if (used.length < runs.length) return undefined
    const parts = PARTS.map((part) => median(used.map((cpu) => cpu[part])))
    const sum = median(used.map((cpu) => PARTS.reduce((all, part) => all + cpu[part], 0)))
    const cells = [variant(name).title, ...parts.map((part) => part.toFixed(1)), `**${sum.toFixed(1)}**`]
    rows.push({ cells, bars: [], figures: { variant: name, connections, used } })
  }
  return { title: `${connections} connections, CPU µs per request`, head: ['', ...PARTS, 'in all'], rows }
}
