import { atMost } from '../../bars.ts'
import type { Place } from '../../places.ts'
import { compare, type Want } from '../comparison.ts'
import type { ContenderName } from '../contender.ts'
import type { Comparison } from '../row.ts'
import type { Section, SectionOptions } from '../section.ts'
import type { GroupsTask } from '../task.ts'

/** Most that is measured of one contender, in seconds. */
const SECONDS = 10
const MANY = 10_000
const FEW = 10

interface Case extends Pick<GroupsTask, 'groups' | 'each' | 'order'> {
  row: string
}

export const groups: Section = async function* (options, stage) {
  yield* measure({ 2: ['pg-boss'], 1: ['Graphile Worker'] }, await stage.place('postgres'), options)
  yield* measure({ 2: [], 1: ['GroupMQ'] }, await stage.place(options.fsync ? 'redis-fsync' : 'redis'), options)
}

/** @param rivals by how many of a group may run at once */
async function* measure(
  rivals: Record<1 | 2, readonly ContenderName[]>,
  place: Place,
  { runs, quick }: SectionOptions,
): AsyncGenerator<Comparison> {
  for (const limit of [2, 1] as const) {
    const rows: Comparison['rows'] = []
    for (const { row, ...sizes } of cases(quick ? 2 : 10)) {
      const task = { measure: 'groups', limit, seconds: SECONDS, ...sizes } satisfies GroupsTask
      const wants: Want[] = [
        { row, figure: 'rate', unit: 'jobs/s' },
        { row: '… most of a group at once', figure: 'most', unit: 'jobs', bar: (own) => atMost(own.max, limit) },
        { row: '… begun over the limit', figure: 'over', unit: 'jobs' },
      ]
      const tasks = (['Millpond', ...rivals[limit]] as const).map((contender) => ({ ...task, contender }))
      rows.push(...(await compare({ tasks, wants }, runs, place)))
    }
    yield {
      title: `${place.about}: at most ${limit} of a group at once`,
      rows,
      notes: [
        `two worker processes of 25 slots, handlers of 1 ms; from their start to the last job, or over ${SECONDS} s if that is sooner`,
        'how many of a group ran at once is counted from the handlers’ own record of when they began and ended',
      ],
    }
  }
}

/** @param each jobs of each group, where there are many */
function cases(each: number): Case[] {
  const many = `${MANY.toLocaleString('en')} groups of ${each} jobs`
  return [
    { row: `${many}, each group’s one after the other`, groups: MANY, each, order: 'blocks' },
    { row: `${many}, pushed in turn`, groups: MANY, each, order: 'turn' },
    // All of them are at their limit all the time.
    { row: `${FEW} groups of ${each * 100} jobs, pushed in turn`, groups: FEW, each: each * 100, order: 'turn' },
  ]
}
