import { atLeast, type Row } from '../../bench/row.ts'
import { MISSING, type Summary } from '../../bench/statistics.ts'
import type { ContenderName } from '../contender.ts'
import { type Figures, inTurn } from '../runner.ts'
import type { Section } from '../section.ts'

const OURS = 'Millpond on PostgreSQL'
/** Jobs of a cycle: about as long for each. */
const CYCLES = {
  [OURS]: 20_000,
  'Graphile Worker, local queue': 20_000,
  'Graphile Worker': 2000,
  'pg-boss': 10_000,
} satisfies Partial<Record<ContenderName, number>>

const FIGURES: { name: string; figure: string; unit: Row['unit']; judged?: true }[] = [
  { name: 'drain in the last fifth', figure: 'drain', unit: 'jobs/s', judged: true },
  { name: 'push, bulk of 500, in the last fifth', figure: 'push', unit: 'jobs/s', judged: true },
  { name: 'drain in the first fifth', figure: 'drain at first', unit: 'jobs/s' },
  { name: 'push in the first fifth', figure: 'push at first', unit: 'jobs/s' },
  { name: 'jobs done', figure: 'jobs', unit: 'jobs' },
  { name: 'dead rows at the end', figure: 'dead', unit: 'rows' },
  { name: 'tables and indexes at the end', figure: 'size', unit: 'MiB' },
]

export const pinned: Section = async function* (stage) {
  const { minutes } = stage.options
  const place = await stage.postgres()
  for (const [contender, cycle] of Object.entries(CYCLES) as [keyof typeof CYCLES, number][]) {
    const task = { measure: 'pinned', contender, seconds: minutes * 60, cycle } as const
    const [figures] = await inTurn([task], 1, place, stage.tell, stage.fail)
    yield {
      title: `${contender}: ${minutes} min of load while an old transaction is open`,
      own: 'with it',
      rows: FIGURES.map((figure) => row(figure, contender === OURS, figures)),
      notes: [
        `${cycle.toLocaleString('en')} jobs are pushed, then drained with 50 slots, again and again, in turn with a database without such a transaction; one run`,
      ],
    }
  }
}

function row(
  { name, figure, unit, judged }: (typeof FIGURES)[number],
  ours: boolean,
  figures: Figures | undefined,
): Row {
  const [own, beside] = ['with it', 'without it'].map((which) => figures?.(`${figure}, ${which}`) ?? MISSING) as [
    Summary,
    Summary,
  ]
  const bar = ours && judged ? atLeast(own.median / beside.median, 0.8, ' ×') : undefined
  return { name, unit, ours: own, rivals: [{ name: 'without it', figure: beside }], bar }
}
