import type { ContenderName } from '../contender.ts'
import type { DrainTask, PushTask, Work } from '../measure.ts'
import { atLeast, type Bar, type Row, ratio } from '../row.ts'
import { inTurn } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING, type Summary } from '../statistics.ts'

const RIVALS = ['fastq', 'p-queue'] as const

export const memory: Section = async function* ({ runs, quick }, tell) {
  const count = quick ? 20_000 : 100_000
  const rounds = 6
  const push = (contender: ContenderName, way: PushTask['way']): PushTask => {
    return { measure: 'push', contender, durability: 'none', way, count, rounds }
  }
  const drain = (contender: ContenderName, from: DrainTask['from'], work: Work): DrainTask => {
    return { measure: 'drain', contender, durability: 'none', from, work, count, rounds }
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
    const froms = ['backlog', 'many', 'each'] as const
    const rivalTasks = (['backlog', 'each'] as const).flatMap((from) => RIVALS.map((name) => drain(name, from, work)))
    const figures = await inTurn([...froms.map((from) => drain('millpond', from, work)), ...rivalTasks], runs)
    for (const heat of ['warm', 'cold'] as const) {
      for (const { name, from, theirs } of COMPARISONS) {
        const ours = figure(figures[froms.indexOf(from)], heat)
        const first = froms.length + (theirs === 'backlog' ? 0 : RIVALS.length)
        const rivals = RIVALS.map((rival, i) => ({ name: rival, ...figure(figures[first + i], heat) }))
        rows.push({
          name: `${name}, ${WORKS[work]}, ${heat}`,
          unit: 'jobs/s',
          ours: ours.figure,
          cpu: ours.cpu,
          rivals,
          bar: bar(ours.figure, rivals[0]?.figure),
        })
      }
    }
  }
  yield {
    title: 'Memory, beside fastq.promise and p-queue',
    rows,
    notes: [
      `${count.toLocaleString('en')} jobs a round; cold: the first round of a process, warm: the median of the next ${rounds - 1}`,
      'rivals: a push is a call on a paused queue, as it resolves only when the work is done; they have no pushMany, so that row stands beside their pushes one by one',
    ],
  }
}

/** fastq and p-queue start at the push: they have a backlog of their own only when paused, which nobody does. So both are shown. */
const COMPARISONS: { name: string; from: DrainTask['from']; theirs: DrainTask['from'] }[] = [
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
