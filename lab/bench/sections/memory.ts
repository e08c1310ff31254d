import type { ContenderName } from '../contender.ts'
import type { DrainTask, PushTask, Work } from '../measure.ts'
import { atLeast, type Bar, type Row, ratio } from '../row.ts'
import { inTurn } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING, type Summary } from '../statistics.ts'

const RIVALS = ['fastq', 'p-queue'] as const
const ROUNDS = 6

export const memory: Section = async function* ({ runs, quick }, tell) {
  const count = quick ? 20_000 : 100_000
  const push = (contender: ContenderName, way: PushTask['way']): PushTask => {
    return { measure: 'push', contender, durability: 'none', way, count, rounds: ROUNDS }
  }

  tell('memory: push')
  const [one = {}, flight = {}, bulk = {}, ...calls] = await inTurn(
    [
      push('millpond', 'one'),
      push('millpond', 'flight'),
      push('millpond', 'bulk'),
      ...RIVALS.map((name) => push(name, 'one')),
    ],
    runs,
  )
  const rivalPush = RIVALS.map((name, index) => ({ name: `${name}, a call`, ...figure(calls[index], 'warm') }))
  const rows: Row[] = [
    { name: 'push, one by one', unit: 'jobs/s', ours: one.warm ?? MISSING, cpu: one['warm cpu'], rivals: rivalPush },
    { name: 'push, 50 in flight', unit: 'jobs/s', ours: flight.warm ?? MISSING, cpu: flight['warm cpu'], rivals: [] },
    { name: 'push, bulk of 500', unit: 'jobs/s', ours: bulk.warm ?? MISSING, cpu: bulk['warm cpu'], rivals: [] },
  ]

  for (const work of ['nothing', 'a turn'] as const) {
    tell(`memory: drain, handlers that do ${work}`)
    rows.push(...(await drains(COMPARISONS, RIVALS, work, count, runs)))
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

/** Rows of the comparisons, warm and then cold. The bar is on the first rival. */
export async function drains(
  comparisons: readonly Comparison[],
  names: readonly ContenderName[],
  work: Work,
  count: number,
  runs: number,
): Promise<Row[]> {
  const drain = (contender: ContenderName, from: DrainTask['from']): DrainTask => {
    return { measure: 'drain', contender, durability: 'none', from, work, count, rounds: ROUNDS }
  }
  const ours = [...new Set(comparisons.map(({ from }) => from))]
  const theirs = [...new Set(comparisons.map((each) => each.theirs))]
  const tasks = [
    ...ours.map((from) => drain('millpond', from)),
    ...theirs.flatMap((from) => names.map((name) => drain(name, from))),
  ]
  const figures = await inTurn(tasks, runs)
  const of = (contender: ContenderName, from: DrainTask['from'], heat: 'warm' | 'cold') =>
    figure(figures[tasks.findIndex((task) => task.contender === contender && task.from === from)], heat)
  return (['warm', 'cold'] as const).flatMap((heat) =>
    comparisons.map((each): Row => {
      const own = of('millpond', each.from, heat)
      const rivals = names.map((name) => ({ name, ...of(name, each.theirs, heat) }))
      const name = `${each.name}, ${WORKS[work]}, ${heat}`
      return { name, unit: 'jobs/s', ours: own.figure, cpu: own.cpu, rivals, bar: bar(own.figure, rivals[0]?.figure) }
    }),
  )
}

interface Comparison {
  name: string
  from: DrainTask['from']
  theirs: DrainTask['from']
}

/** fastq and p-queue start at the push: they have a backlog of their own only when paused, which nobody does. So both are shown. */
export const COMPARISONS: readonly Comparison[] = [
  { name: 'drain, theirs paused then resumed', from: 'backlog', theirs: 'backlog' },
  { name: 'drain, theirs from the first push', from: 'backlog', theirs: 'each' },
  { name: 'pushMany + drain', from: 'many', theirs: 'each' },
  { name: 'push each + drain', from: 'each', theirs: 'each' },
]
const WORKS: Record<Work, string> = { nothing: 'no-op', 'a turn': 'one turn' }

function figure(found: Record<string, Summary> | undefined, heat: 'warm' | 'cold') {
  return { figure: found?.[heat] ?? MISSING, cpu: found?.[`${heat} cpu`] }
}

function bar(ours: Summary, fastq: Summary | undefined): Bar {
  return atLeast(ratio('jobs/s', ours, fastq ?? MISSING), 1, ' ×')
}
