import { atLeast } from '../../bars.ts'
import type { Place } from '../../places.ts'
import { MISSING } from '../../statistics.ts'
import type { ContenderName } from '../contender.ts'
import { type Row, ratio } from '../row.ts'
import { type Figures, measured } from '../runner.ts'
import type { Section } from '../section.ts'
import type { DrainTask, PushTask, Task, Work } from '../task.ts'

const RIVALS = ['fastq', 'p-queue'] as const
const ROUNDS = 6

export const memory: Section = async function* ({ runs, quick }, stage) {
  const count = quick ? 20_000 : 100_000
  const place = await stage.place('memory')
  const push = (contender: ContenderName, way: PushTask['way']): Task => {
    return { measure: 'push', contender, way, count, rounds: ROUNDS }
  }
  const ours = (['one', 'flight', 'bulk'] as const).map((way) => push('Millpond', way))
  const [one, flight, bulk, ...calls] = await measured(
    [...ours, ...RIVALS.map((name) => push(name, 'one'))],
    runs,
    place,
  )
  const rivals = RIVALS.map((name, at) => ({ name: `${name}, a call`, ...found(calls[at], 'warm') }))
  const row = (name: string, figures: Figures | undefined, beside: Row['rivals'] = []): Row => {
    const { figure, cpu } = found(figures, 'warm')
    return { name, unit: 'jobs/s', ours: figure, cpu, rivals: beside }
  }
  const rows = [row('push, one by one', one, rivals), row('push, 50 in flight', flight), row('push, bulk of 500', bulk)]
  for (const work of ['nothing', 'a turn'] as const) {
    rows.push(...(await drains(COMPARISONS, RIVALS, work, count, runs, place)))
  }
  yield {
    title: 'Memory, beside fastq.promise and p-queue',
    rows,
    notes: [
      `${count.toLocaleString('en')} jobs a round; cold: the first round of a process, warm: the median of the next ${ROUNDS - 1}`,
      'rivals: a push is a call on a paused queue, as it resolves only when the work is done; they have no pushMany, so that row stands beside their pushes one by one',
    ],
  }
}

interface Compared {
  name: string
  from: DrainTask['from']
  theirs: DrainTask['from']
}

/** fastq and p-queue start at the push: they have a backlog of their own only when paused, which nobody does. So both are shown. */
export const COMPARISONS: readonly Compared[] = [
  { name: 'drain, theirs paused then resumed', from: 'backlog', theirs: 'backlog' },
  { name: 'drain, theirs from the first push', from: 'backlog', theirs: 'each' },
  { name: 'pushMany + drain', from: 'many', theirs: 'each' },
  { name: 'push each + drain', from: 'each', theirs: 'each' },
]
const WORKS: Record<Work, string> = { nothing: 'no-op', 'a turn': 'one turn' }

/** Rows of the comparisons, warm and then cold. The bar is on the first rival. */
export async function drains(
  comparisons: readonly Compared[],
  names: readonly ContenderName[],
  work: Work,
  count: number,
  runs: number,
  place: Place,
): Promise<Row[]> {
  const drain = (contender: ContenderName, from: DrainTask['from']) => {
    return { measure: 'drain', contender, from, work, count, rounds: ROUNDS, forget: false } as const
  }
  const ours = [...new Set(comparisons.map(({ from }) => from))]
  const theirs = [...new Set(comparisons.map((each) => each.theirs))]
  const tasks = [
    ...ours.map((from) => drain('Millpond', from)),
    ...theirs.flatMap((from) => names.map((name) => drain(name, from))),
  ]
  const figures = await measured(tasks, runs, place)
  const of = (contender: ContenderName, from: DrainTask['from'], heat: string) =>
    found(figures[tasks.findIndex((task) => task.contender === contender && task.from === from)], heat)
  return ['warm', 'cold'].flatMap((heat) =>
    comparisons.map((each): Row => {
      const { figure, cpu } = of('Millpond', each.from, heat)
      const rivals = names.map((name) => ({ name, ...of(name, each.theirs, heat) }))
      const bar = atLeast(ratio('jobs/s', figure, rivals[0]?.figure ?? MISSING), 1, ' ×')
      return { name: `${each.name}, ${WORKS[work]}, ${heat}`, unit: 'jobs/s', ours: figure, cpu, rivals, bar }
    }),
  )
}

function found(figures: Figures | undefined, heat: string) {
  return { figure: figures?.(heat) ?? MISSING, cpu: figures?.(`${heat} cpu`) }
}
