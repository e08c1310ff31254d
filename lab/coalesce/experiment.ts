/** Experiment E4: `GET /` asks a slow upstream, each request by itself or one for all. */
import { atLeast, atMost, compact } from '../bars.ts'
import type { Experiment, Row, Table } from '../experiment.ts'
import { some, whole } from '../flags.ts'
import { generator } from '../load/load.ts'
import { median } from '../statistics.ts'
import { inTurn } from '../turns.ts'
import { type Outcome, run } from './run.ts'
import { ceilingOf, NAMES, type VariantName, variant } from './variants.ts'

/** Of the ceiling that the flight sets; of the constant answer's rate, where answers are reused. */
const OF_CEILING = 0.9
const OF_CONSTANT = 0.8

const flags = {
  only: some(NAMES),
  runs: whole('of each variant, on fresh servers', '3', '1'),
  seconds: whole('of load', '10', '3'),
  warming: whole('seconds of a constant answer before it', '2'),
  connections: whole('at once', '1000'),
}

export const coalesce: Experiment<typeof flags> = {
  id: 'E4',
  flags,
  about: ({ connections, seconds, runs }) =>
    `GET / on Express, ${connections} connections, ${seconds} s after warming up, ${generator}.
Medians of ${runs} runs, each on fresh servers, variants in turn; at once and failed: the most of any run.`,
  async *measure({ only, runs, connections, ...timing }, stage) {
    const perform = async (name: VariantName) => {
      const { store } = variant(name)
      const url = store === undefined ? '' : await (await stage.place(store)).fresh()
      return run(name, connections, timing, url)
    }
    yield tableOf(connections, await inTurn(only, runs, perform))
  },
}

const HEAD = [
  ...['', 'processes', 'req/s', '× constant', '× ceiling', 'p50 ms', 'p95 ms', 'p99 ms', 'upstream calls', 'told'],
  ...['at once', 'call ms', 'CPU µs', 'failed'],
]

function tableOf(connections: number, outcomes: ReadonlyMap<VariantName, readonly Outcome[]>): Table {
  const rows = [...outcomes].map(([name, runs]): Row => {
    const { title, processes, flies, reuses } = variant(name)
    /** Of each run, with the rate of the constant answer from as many processes in the same round. */
    const constants = outcomes.get(ceilingOf(processes)) ?? []
    const shares = (share: (run: Outcome, constant: number) => number) =>
      constants.flatMap(({ rate }, at) => (runs[at] === undefined ? [] : [share(runs[at], rate)]))
    const ofConstant = shares(({ rate }, constant) => rate / constant)
    const ofCeiling = flies && !reuses ? shares((each, constant) => shareOfCeiling(each, constant, connections)) : []
    const most = (figure: (run: Outcome) => number) => Math.max(...runs.map(figure))
    const [failed, atOnce] = [most((each) => each.failed), most((each) => each.atOnce)]
    const bars = [atMost(failed, 0, ' failed')]
    if (flies) {
      const untold = most(({ calls, told }) => Math.abs(calls - told))
      bars.push(atMost(atOnce, 1, ' at once'), atMost(untold, 0, ' calls not told'))
      if (ofCeiling.length > 0) bars.push(atLeast(median(ofCeiling), OF_CEILING, ' × ceiling'))
      if (reuses && ofConstant.length > 0) bars.push(atLeast(median(ofConstant), OF_CONSTANT, ' × constant'))
    }
    const middle = (figure: Exclude<keyof Outcome, 'curve'>) => compact(median(runs.map((each) => each[figure])))
    const asks = runs.some(({ calls }) => calls > 0)
    const cells = [
      title,
      String(processes),
      `**${middle('rate')}**`,
      ...[ofConstant, ofCeiling].map((found) => (found.length > 0 ? compact(median(found)) : '')),
      ...(['p50', 'p95', 'p99'] as const).map(middle),
      ...(asks ? [middle('calls'), middle('told'), compact(atOnce), middle('flight')] : ['', '', '', '']),
      middle('cpu'),
      compact(failed),
    ]
    return { cells, bars, figures: { variant: name, runs, ofConstant, ofCeiling } }
  })
  return { head: HEAD, rows }
}

/**
 * In a closed loop every caller waits for the flight, and then for the answers to all:
 * connections ÷ (flight + connections ÷ constant rate).
 */
function shareOfCeiling({ rate, flight }: Outcome, constant: number, connections: number): number {
  return rate / (connections / (flight / 1000 + connections / constant))
}
