/** Experiment E2, where the mail server has a rate limit: adding workers stops helping. */
import { atLeast, atMost, compact } from '../../bars.ts'
import type { Experiment, Row, Table } from '../../experiment.ts'
import { some, whole } from '../../flags.ts'
import { median } from '../../statistics.ts'
import { inTurn } from '../../turns.ts'
import { MAIL_TAKES } from '../settings.ts'
import { type Outcome, run } from './run.ts'
import { LIMIT, PROCESSES, SLOTS } from './settings.ts'
import { type Counting, NAMES, type Store, type VariantName, variant } from './variants.ts'

/** By how much the rate may be above the limit. */
const ABOVE = 0.01
const PLACES = {
  array: 'memory',
  sqlite: 'sqlite',
  postgres: 'postgres',
  redis: 'redis-fsync',
} as const satisfies Record<Store, string>

const flags = {
  only: some(NAMES),
  runs: whole('of each variant', '1'),
  mails: whole('that wait when the senders begin', '3000', '600'),
}

export const rate: Experiment<typeof flags> = {
  id: 'E2 with a rate',
  flags,
  about: ({ mails, runs }) =>
    `${mails} mails wait; each takes ${MAIL_TAKES / 1000} s, and the mail server takes ${LIMIT}/s. ${PROCESSES} senders with ${SLOTS} slots each.
Mails/s that the server took, the median of ${runs} run(s), variants in turn; else the most of any run.`,
  async *measure({ only, runs, mails }, stage) {
    const perform = async (name: VariantName) => {
      const place = await stage.place(PLACES[variant(name).store])
      return run(name, mails, await place.fresh())
    }
    const outcomes = await inTurn(only, runs, perform)
    for (const counting of ['bucket', 'window'] as const) {
      const some = [...outcomes].filter(([name]) => variant(name).counting === counting)
      if (some.length > 0) yield tableOf(counting, some)
    }
  },
}

const HEAD = ['', 'rate', 'mails/s', 'most that came in a second', 'refused', 'missing', 'twice']
const SERVERS: Record<Counting, string> = {
  bucket: `A server that takes ${LIMIT} a second, and up to a second's worth at once`,
  window: `A server that never takes more than ${LIMIT} within a second`,
}

function tableOf(counting: Counting, outcomes: readonly [VariantName, readonly Outcome[]][]): Table {
  const rows = outcomes.map(([name, runs]): Row => {
    const { title, rate: limit, least } = variant(name)
    const of = (figure: keyof Outcome) => runs.map((each) => each[figure])
    const most = (figure: keyof Outcome) => Math.max(...of(figure))
    const cells = [
      title,
      limit === undefined ? '' : `\`${JSON.stringify(limit)}\``,
      `**${median(of('rate')).toFixed(1)}**`,
      ...(['busiest', 'refused', 'missing', 'twice'] as const).map((figure) => compact(most(figure))),
    ]
    if (least === undefined) return { cells, bars: [], figures: { variant: name, runs } }
    const bars = [
      atLeast(Math.min(...of('rate')), LIMIT * least, '/s'),
      atMost(most('rate'), LIMIT * (1 + ABOVE), '/s'),
      atMost(most('refused'), 0, ' refused'),
      atMost(most('missing'), 0, ' missing'),
    ]
    return { cells, bars, figures: { variant: name, runs } }
  })
  return { title: SERVERS[counting], head: HEAD, text: ['rate'], rows }
}
