/** What the dashboard, the command line and metrics ask a store. */

import { explain } from '../../src/pond/explain.ts'
import type { Store } from '../../src/store.ts'
import { ALL_MINUTES } from '../../src/values/figures/histogram.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import type { JobState } from '../../src/values/jobs/records.ts'
import type { JobFilter } from '../../src/values/operations/requests.ts'
import { COMMON_CODE, GROUPED, groupOf, PLAIN, RARE_CODE, UNCLAIMED } from './fill.ts'

/** Jobs and groups of a page. */
const PAGE = 100
const MAX_GROUPS = 200
/** How far back the percentiles of the dashboard look, in minutes. */
const MINUTES = 5

export interface Look {
  name: string
  ask(): Promise<unknown>
}

/** Filters that hold for no job, for few and for most: what is looked for in vain takes longest. */
const FILTERS: Record<string, JobFilter> = {
  'of a group': { group: groupOf(1) },
  'of no group there is': { group: 'nobody' },
  'by key': { key: 'order-100' },
  'by error code': { errorCode: COMMON_CODE },
  'by a rare error code': { errorCode: RARE_CODE },
  'by error text': { errorText: 'nowhere' },
  'pushed from': { pushedFrom: Date.now() + 1e9 },
  'pushed before': { pushedBefore: 1 },
  'by text': { text: 'nowhere' },
}
const STATES: readonly JobState[] = ['waiting', 'scheduled', 'running', 'done', 'dead', 'cancelled']

export async function looksAt(store: Store): Promise<Look[]> {
  const { operations } = store
  const looks: Look[] = []
  const add = (name: string, ask: () => Promise<unknown>) => looks.push({ name, ask })

  add('stats of all queues', () => operations.stats({ minutes: MINUTES }))
  add('stats of all queues, histograms of all time', () => operations.stats({ minutes: ALL_MINUTES }))
  add('workers', () => operations.workers({}))
  add('schedules', () => operations.schedules({ limit: PAGE }))
  for (const queue of [PLAIN, GROUPED, UNCLAIMED]) {
    add(`${queue}: stats`, () => operations.stats({ queue, minutes: MINUTES }))
    add(`${queue}: settings`, () => operations.settings({ queue }))
    add(`${queue}: groups`, () => operations.groups({ queue, limit: MAX_GROUPS }))
    add(`${queue}: groups, from the middle`, () => operations.groups({ queue, limit: MAX_GROUPS, after: groupOf(5) }))
    add(`${queue}: one group`, () => operations.groups({ queue, limit: 1, group: groupOf(1) }))
    const { jobs, next } = await operations.list({ queue, state: 'waiting', limit: PAGE })
    const id = jobs.at(-1)?.id ?? newId()
    add(`${queue}: find`, () => operations.find({ ids: [id] }))
    add(`${queue}: ahead`, () => operations.ahead({ id }))
    add(`${queue}: explain`, () => explain(store, id))
    for (const state of queue === PLAIN ? STATES : (['waiting', 'running'] as const)) {
      const change = { kind: 'remove' } as const
      add(`${queue}: list ${state}`, () => operations.list({ queue, state, limit: PAGE }))
      add(`${queue}: count ${state}`, () => operations.bulk({ queue, state, change, limit: 0 }))
      for (const [name, filter] of Object.entries(FILTERS)) {
        add(`${queue}: list ${state} ${name}`, () => operations.list({ queue, state, limit: PAGE, filter }))
        add(`${queue}: count ${state} ${name}`, () => operations.bulk({ queue, state, change, limit: 0, filter }))
      }
    }
    if (next === null) continue
    add(`${queue}: list waiting, further`, () => operations.list({ queue, state: 'waiting', limit: PAGE, after: next }))
  }
  return looks
}
