import { atMost } from '../../bench/row.ts'
import { compare, type Want } from '../comparison.ts'
import type { GroupedName } from '../grouped.ts'
import type { Place } from '../place.ts'
import type { Page, Section, Stage } from '../section.ts'
import type { GroupsTask } from '../task.ts'

const GROUPS = 10_000
/** Jobs of each group. */
const EACH = 10
/** Most that is measured of one contender, in seconds. */
const SECONDS = 30
const ORDERS = { blocks: 'all jobs of a group, then those of the next', turn: 'groups in turn' }

export const groups: Section = async function* (stage) {
  yield* measure(
    'Millpond on PostgreSQL',
    { 2: ['pg-boss'], 1: ['Graphile Worker', 'pg-boss'] },
    await stage.postgres(),
    stage,
  )
  yield* measure('Millpond on Redis', { 2: [], 1: ['GroupMQ'] }, await stage.redis(), stage)
}

/** @param rivals by how many of a group may run at once */
async function* measure(
  ours: GroupedName,
  rivals: Record<1 | 2, readonly GroupedName[]>,
  place: Place,
  stage: Stage,
): AsyncGenerator<Page> {
  const { quick, runs } = stage.options
  const each = quick ? 1 : EACH
  for (const limit of [2, 1] as const) {
    const rows: Page['rows'] = []
    for (const order of ['blocks', 'turn'] as const) {
      const task = { measure: 'groups', groups: GROUPS, each, limit, order, seconds: SECONDS } satisfies GroupsTask
      const wants: Want[] = [
        { row: `pushed ${ORDERS[order]}`, figure: 'rate', unit: 'jobs/s' },
        { row: 'most of a group at once', figure: 'most', unit: 'jobs', bar: (own) => atMost(own.max, limit) },
        { row: 'begun over the limit', figure: 'over', unit: 'jobs' },
      ]
      const tasks = [ours, ...rivals[limit]].map((contender) => ({ ...task, contender }))
      rows.push(...(await compare(tasks, wants, runs, place, stage)))
    }
    yield {
      title: `${place.about}: ${GROUPS.toLocaleString('en')} groups of ${each} jobs, at most ${limit} of a group at once`,
      rows,
      notes: [
        `two worker processes of 25 slots, handlers of 1 ms; jobs/s from their start to the last job, or over ${SECONDS} s if that is sooner`,
      ],
    }
  }
}
