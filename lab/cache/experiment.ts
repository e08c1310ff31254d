/** Experiment E3: a value from Redis, in many sizes and encodings. */
import { atLeast, atMost, compact } from '../bars.ts'
import type { Experiment, Row, Table } from '../experiment.ts'
import { on, some, whole, wholes } from '../flags.ts'
import { generator } from '../load/load.ts'
import { median } from '../statistics.ts'
import { inTurn } from '../turns.ts'
import { large } from './large.ts'
import { type Outcome, run } from './run.ts'
import { NAMES, type VariantName, variant } from './variants.ts'

/** The bars against MessagePack are for this many items. */
const JUDGED = 1000
const TIMES = 10
const MEMORY = 0.5

const flags = {
  only: some(NAMES),
  items: wholes('of the value', '1,10,100,1000,10000,100000', '1,100,1000,10000'),
  full: on('1,000,000 items as well, and a value of 600 MB'),
  large: on('only the value of 600 MB'),
  runs: whole('of each variant with each size, on an empty Redis', '3', '1'),
  seconds: whole('of load', '10', '1'),
  connections: whole('at once', '10'),
}

export const cache: Experiment<typeof flags> = {
  id: 'E3',
  flags,
  about: ({ connections, seconds, runs }) =>
    `POST / on Fastify, ${connections} connections, ${seconds} s after 1 s of warming up, ${generator}.
Medians of ${runs} runs, each in a fresh process on an empty Redis, variants in turn; failed: the most of any run.`,
  async *measure({ only, items, runs, connections, seconds, ...options }, stage) {
    const redis = await stage.place('redis')
    const sizes = options.large ? [] : options.full ? [...items, 1_000_000] : items
    for (const count of sizes) {
      const names = only.filter((name) => count <= (variant(name).most ?? Number.POSITIVE_INFINITY))
      const outcomes = await inTurn(
        names,
        runs,
        async (name) => run(name, count, connections, seconds, await redis.fresh()),
        (name) => `${name}, ${count} items`,
      )
      yield tableOf(count, outcomes)
    }
    if (!options.large && !options.full) return
    const { text, intact, ...figures } = await large(await redis.fresh())
    yield {
      title: 'A large value',
      head: [''],
      rows: [{ cells: [text], bars: [atMost(intact ? 0 : 1, 0, ' wrong')], figures }],
    }
  },
}

type Outcomes = ReadonlyMap<VariantName, readonly Outcome[]>

function tableOf(count: number, outcomes: Outcomes): Table {
  const rows = [...outcomes].map(([name, runs]): Row => {
    const { title, ceiling } = variant(name)
    const middle = (figure: Exclude<keyof Outcome, 'curve'>) => compact(median(runs.map((each) => each[figure])))
    const failed = compact(Math.max(...runs.map((each) => each.failed)))
    const cells = [title, `**${middle('rate')}**`, middle('p50'), middle('p99'), ceiling ? '' : middle('redis'), failed]
    return { cells, bars: barsOf(name, count, outcomes), figures: { variant: name, count, runs } }
  })
  return { title: `${count} items`, head: ['', 'req/s', 'p50 ms', 'p99 ms', 'Redis bytes', 'failed'], rows }
}

function barsOf(name: VariantName, count: number, outcomes: Outcomes) {
  const runs = outcomes.get(name) ?? []
  const most = (figure: Exclude<keyof Outcome, 'curve'>) => Math.max(...runs.map((each) => each[figure]))
  const bars = [atMost(most('wrong'), 0, ' wrong')]
  if (name !== 'millpond') return bars
  bars.push(atMost(most('failed'), 0, ' failed'))
  const plain = [...outcomes].filter(([each]) => variant(each).plain).map(([, found]) => found)
  if (plain.length > 0) {
    const best = (at: number) => Math.max(...plain.map((found) => found[at]?.rate ?? 0))
    bars.push(atLeast(median(runs.map(({ rate }, at) => rate / best(at))), 1, ' × the best plain'))
  }
  const packed = outcomes.get('msgpack')
  if (packed === undefined || count !== JUDGED) return bars
  const share = (figure: 'rate' | 'redis') =>
    median(runs.map((each, at) => each[figure] / (packed[at]?.[figure] ?? Number.NaN)))
  bars.push(atLeast(share('rate'), TIMES, ' × MessagePack'), atMost(share('redis'), MEMORY, ' × its memory'))
  return bars
}
