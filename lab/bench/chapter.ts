/** The rivals of the report: the stores on Redis and PostgreSQL beside the queues that people use there. */
import { compact } from '../bars.ts'
import type { ChapterPlan } from '../chapter.ts'
import { versionsOfPackages } from '../machine.ts'
import { type Column, type Finding, numberIn, type Part, type Row } from '../report/model.ts'
import { shown } from '../report/units.ts'
import { type Row as Compared, type Comparison, type Figure, ratio } from './row.ts'
import type { Section } from './section.ts'

const SECTIONS: Record<string, () => Promise<Section>> = {
  redis: async () => (await import('./sections/servers.ts')).redis,
  postgres: async () => (await import('./sections/servers.ts')).postgres,
}
const RIVALS = ['bullmq', 'graphile-worker', 'pg-boss']

export const rivals: ChapterPlan = {
  id: 'rivals',
  title: 'Beside other queues',
  short: 'other queues',
  question: 'What do the same jobs cost in the queues that people use on Redis and PostgreSQL?',
  takes: { smoke: 120, usual: 300, full: 1200 },
  published: [],
  setUp: ({ runs }) => [
    'A fresh process for every measurement, on a server with nothing in it, contenders in turn.',
    `Medians of ${runs} ${runs === 1 ? 'run' : 'runs'}. PostgreSQL has each commit on the disk, Redis keeps nothing on the disk, the same for all.`,
    'Rivals run with their fastest documented settings.',
  ],
  async *measure(run) {
    for (const [name, version] of Object.entries(versionsOfPackages(RIVALS))) run.uses(name, version)
    for (const [id, load] of Object.entries(SECTIONS)) {
      if (!run.wants(id)) continue
      run.tell(`queues on ${id}`)
      const options = {
        runs: run.runs,
        backlog: 1,
        minutes: 1,
        fsync: false,
        quick: run.size === 'smoke',
        json: undefined,
      }
      for await (const found of (await load())(options, run.stage)) yield partFrom(id, found)
    }
  },
  findings,
}

const bestOf = ({ unit, rivals: all, ours }: Compared): Figure | undefined =>
  all.toSorted((a, b) => ratio(unit, ours, a.figure) - ratio(unit, ours, b.figure))[0]

function partFrom(id: string, { title, rows, notes }: Comparison): Part {
  const names = [...new Set(rows.flatMap((row) => row.rivals.map(({ name }) => name)))]
  const columns: Column[] = [
    { key: 'Millpond', label: 'Millpond', unit: 'text' },
    ...names.map((name): Column => ({ key: name, label: name, unit: 'text' })),
    { key: 'times', label: 'times the best', unit: 'times' },
  ]
  const row = (each: Compared): Row => {
    const best = bestOf(each)
    const figures: Row['figures'] = { Millpond: `${compact(each.ours.median)} ${each.unit}` }
    for (const { name, figure } of each.rivals) figures[name] = compact(figure.median)
    if (best !== undefined) figures.times = ratio(each.unit, each.ours, best.figure)
    return {
      variant: each.name,
      title: each.name,
      kind: 'ours',
      figures,
      bars: each.bar === undefined ? [] : [each.bar],
    }
  }
  return {
    ...{ id, title, notes, columns, rows: rows.map(row) },
    about: 'Each row is measured in its own unit, which stands with Millpond’s figure.',
    charts: [{ kind: 'bars', title: 'Times the best of the others', column: 'times', log: true }],
  }
}

function findings(parts: readonly Part[]): Finding[] {
  return parts.flatMap(({ id, title, rows }): Finding[] => {
    const times = rows.flatMap((row) => numberIn(row, 'times') ?? [])
    if (times.length === 0) return []
    const [least, most] = [Math.min(...times), Math.max(...times)]
    return [
      {
        verdict: least >= 1 ? 'holds' : 'missed',
        figure: `${shown(least, 'times')} to ${shown(most, 'times')}`,
        text: `the best of the other queues, ${title}.`,
        part: id,
      },
    ]
  })
}
