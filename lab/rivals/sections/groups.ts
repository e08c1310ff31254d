import { atMost } from '../../bench/row.ts'
import { compare, type Want } from '../comparison.ts'
import type { GroupedName } from '../grouped.ts'
import type { Place } from '../place.ts'
import type { Page, Section, Stage } from '../section.ts'
import type { GroupsTask } from '../task.ts'

/** Most that is measured of one contender, in seconds. */
const SECONDS = 10
const MANY = 10_000
const FEW = 10

interface Case extends Pick<GroupsTask, 'groups' | 'each' | 'order'> {
  row: string
}

export const groups: Section = async function* (stage) {
  const postgres = { 2: ['pg-boss'], 1: ['Graphile Worker'] } as const
  yield* measure('Millpond on PostgreSQL', postgres, await stage.postgres(), stage)
  yield* measure('Millpond on Redis', { 2: [], 1: ['GroupMQ'] }, await stage.redis(), stage)
}

/** @param rivals by how many of a group may run at once */
async function* measure(
  ours: GroupedName,
  rivals: Record<1 | 2, readonly GroupedName[]>,
  place: Place,
  stage: Stage,
): AsyncGenerator<Page> {
  const { runs, quick } = stage.options
  for (const limit of [2, 1] as const) {
    const rows: Page['rows'] = []
    for (const { row, ...sizes } of cases(quick ? 2 : 10)) {
      const task = { measure: 'groups', limit, seconds: SECONDS, ...sizes } satisfies GroupsTask
      const wants: Want[] = [
        { row, figure: 'rate', unit: 'jobs/s' },
        { row: '… most of a group at once', figure: 'most', unit: 'jobs', bar: (own) => atMost(own.max, limit) },
        { row: '… begun over the limit', figure: 'over', unit: 'jobs' },
      ]
      const tasks = [ours, ...rivals[limit]].map((contender) => ({ ...task, contender }))
      rows.push(...(await compare({ tasks, wants }, runs, place, stage)))
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
