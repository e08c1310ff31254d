import { atLeast } from '../../bars.ts'
import { MISSING } from '../../statistics.ts'
import type { ContenderName } from '../contender.ts'
import type { Row } from '../row.ts'
import { type Figures, measured } from '../runner.ts'
import type { Section } from '../section.ts'
import type { PinnedTask } from '../task.ts'

const OURS = 'Millpond'
/** Jobs of a cycle: about as long for each. */
const CYCLES = {
  [OURS]: 20_000,
  'Graphile Worker, local queue': 20_000,
  'Graphile Worker': 2000,
  'pg-boss': 10_000,
} satisfies Partial<Record<ContenderName, number>>

const RUNS: { contender: keyof typeof CYCLES; path: PinnedTask['path']; title: string }[] = [
  { contender: OURS, path: 'plain', title: OURS },
  { contender: OURS, path: 'retried', title: `${OURS}, a tenth of the jobs fail once` },
  { contender: OURS, path: 'delayed', title: `${OURS}, every job is delayed by 50 ms` },
  { contender: 'Graphile Worker, local queue', path: 'plain', title: 'Graphile Worker, local queue' },
  { contender: 'Graphile Worker', path: 'plain', title: 'Graphile Worker' },
  { contender: 'pg-boss', path: 'plain', title: 'pg-boss' },
]

const FIGURES: { name: string; figure: string; unit: Row['unit']; judged?: true }[] = [
  { name: 'drain in the last fifth', figure: 'drain', unit: 'jobs/s', judged: true },
  { name: 'push, bulk of 500, in the last fifth', figure: 'push', unit: 'jobs/s', judged: true },
  { name: 'drain in the first fifth', figure: 'drain at first', unit: 'jobs/s' },
  { name: 'push in the first fifth', figure: 'push at first', unit: 'jobs/s' },
  { name: 'jobs done', figure: 'jobs', unit: 'jobs' },
  { name: 'dead rows at the end', figure: 'dead', unit: 'rows' },
  { name: 'tables and indexes at the end', figure: 'size', unit: 'MiB' },
]

export const pinned: Section = async function* ({ minutes }, stage) {
  const place = await stage.place('postgres')
  for (const { contender, path, title } of RUNS) {
    const cycle = CYCLES[contender]
    const task = { measure: 'pinned', contender, seconds: minutes * 60, cycle, path } as const
    const [figures] = await measured([task], 1, place)
    yield {
      title: `${title}: ${minutes} min of load while an old transaction is open`,
      own: 'with it',
      rows: FIGURES.map((figure) => row(figure, contender === OURS, figures)),
      notes: [
        `${cycle.toLocaleString('en')} jobs are pushed, then drained with 50 slots, again and again, in turn with a database without such a transaction; one run`,
      ],
    }
  }
}

function row({ name, figure, unit, judged }: (typeof FIGURES)[number], isOurs: boolean, figures?: Figures): Row {
  const of = (which: string) => figures?.(`${figure}, ${which}`) ?? MISSING
  const [ours, beside] = [of('with it'), of('without it')]
  const bar = isOurs && judged ? atLeast(ours.median / beside.median, 0.8, ' ×') : undefined
  return { name, unit, ours, rivals: [{ name: 'without it', figure: beside }], bar }
}
