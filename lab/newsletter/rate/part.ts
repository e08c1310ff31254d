/** A mail server with a rate limit, as a part of the report. */
import { atLeast, atMost } from '../../bars.ts'
import { attempts, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { median } from '../../statistics.ts'
import { MAIL_TAKES } from '../settings.ts'
import { type Outcome, run as runOnce } from './run.ts'
import { LIMIT, PROCESSES, SLOTS } from './settings.ts'
import { type Store, type VariantName, variant } from './variants.ts'

const MAILS = { smoke: 400, usual: 1200, full: 3000 }
const ABOVE = 0.01
const NAMES = ['array', 'sqlite', 'postgres', 'redis'] as const satisfies readonly VariantName[]
const PLACES = {
  array: 'memory',
  sqlite: 'sqlite',
  postgres: 'postgres',
  redis: 'redis-fsync',
} as const satisfies Record<Store, string>

export async function limited(run: Run): Promise<Part> {
  const mails = run.pick(MAILS)
  const outcomes = await attempts(
    run,
    run.size === 'smoke' ? (['array', 'sqlite'] as const) : NAMES,
    (name) => `a mail server with a limit, ${variant(name).title}`,
    async (name) => runOnce(name, mails, await (await run.stage.place(PLACES[variant(name).store])).fresh()),
    2,
  )
  return {
    id: 'limited',
    title: `A mail server that takes ${LIMIT} mails a second`,
    about: `${mails.toLocaleString('en')} mails wait; a mail takes ${MAIL_TAKES / 1000} s, and the mail server refuses what is over its limit with 429. ${PROCESSES} sender processes with ${SLOTS.toLocaleString('en')} slots each: more workers than the limit can fill, so adding workers no longer helps.`,
    columns: [
      { key: 'rate', label: 'mails/s', unit: 'count', better: 'more' },
      { key: 'busiest', label: 'most that came in a second', unit: 'count', better: 'less' },
      { key: 'refused', label: 'refused', unit: 'count', better: 'less' },
      { key: 'missing', label: 'missing', unit: 'count' },
      { key: 'twice', label: 'twice', unit: 'count' },
    ],
    rows: [...outcomes].filter(([, runs]) => runs.length > 0).map(([name, runs]) => rowFor(name, runs)),
    charts: [{ kind: 'bars', title: 'Mails that the server refused', column: 'refused' }],
    notes: [
      'Millpond: limits: { rate: "200/s" }, shared by all workers of the queue. The rate is taken from a second after the first mail to the last.',
    ],
  }
}

function rowFor(name: VariantName, runs: readonly Outcome[]): Row {
  const { title, least } = variant(name)
  const most = (figure: keyof Outcome) => Math.max(...runs.map((each) => each[figure]))
  const rate = median(runs.map((each) => each.rate))
  return {
    variant: name,
    title,
    kind: name === 'array' ? 'plain' : 'ours',
    figures: {
      rate,
      busiest: most('busiest'),
      refused: most('refused'),
      missing: most('missing'),
      twice: most('twice'),
    },
    bars:
      least === undefined
        ? []
        : [
            atLeast(rate, LIMIT * least, '/s'),
            atMost(rate, LIMIT * (1 + ABOVE), '/s'),
            atMost(most('refused'), 0, ' refused'),
            atMost(most('missing'), 0, ' missing'),
          ],
  }
}
