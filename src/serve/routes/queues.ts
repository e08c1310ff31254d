/** Queues as operators see them. */

import { types } from 'node:util'
import { limitSettings, needsLimits } from '../../pond/limits.ts'
import { jobsQuery } from '../../pond/listing.ts'
import type { QueueReport } from '../../pond/stats.ts'
import type { Store } from '../../store.ts'
import { type JobInfo, jobInfo } from '../../values/jobs/job.ts'
import { JOB_STATES } from '../../values/jobs/records.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { defined } from '../../values/options/options.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import { setsNothing } from '../../values/settings/settings.ts'
import { jsonText } from '../../web/answer.ts'
import { jobView } from '../../web/job-view.ts'
import { Refusal } from '../../web/problem.ts'
import type { Acted } from '../acted.ts'
import * as schemas from '../api-schemas.ts'
import { JOB_FILTERS } from '../filter-schemas.ts'
import { integer, type Members, oneOf } from '../json-schema.ts'
import { type Route, type RouteContext, route } from '../route.ts'

const STATS_QUERY = { minutes: integer(1, 60, { description: 'How far back the percentiles look.', default: 5 }) }
const LIST_STATE = { state: oneOf(JOB_STATES, { description: 'Their state.' }) }
const LIST_QUERY = {
  limit: integer(1, 100, { description: 'Most jobs or groups of a page.', default: 20 }),
  after: { ...schemas.cursor, description: '`next` of the page before, with the same `state`.' },
}
const JOBS_QUERY = { ...LIST_QUERY, ...JOB_FILTERS }
const GROUPS_QUERY = {
  limit: LIST_QUERY.limit,
  after: { ...schemas.groupName, description: LIST_QUERY.after.description },
}
/** A request with a rare filter ends after so many looks, each of at most 1,000 jobs, and says where to go on. */
const MAX_LOOKS = 10
/** Jobs that a request for the removal of a queue removes, and at most in a step. */
const MAX_REMOVED = 10_000
const REMOVED_PER_CALL = 1000
/** Jobs asked for in a call, and bytes after which a page ends: it is built in memory. */
const MAX_JOBS_PER_CALL = 10
export const MAX_PAGE_BYTES = 4 * 1024 * 1024

export function queueRoutes({ store, pond, queueLimit, acted }: RouteContext): Route[] {
  return [
    route('GET /v1/queues', 'listQueues', 'Counts and percentiles of every queue', {
      query: STATS_QUERY,
      answers: { 200: { description: 'The queues.', schema: schemas.queueList } },
      handle: async ({ query }) => ({ queues: (await pond.stats(query)).map(reportView) }),
    }),
    route('GET /v1/queues/{queue}', 'getQueue', 'Counts and percentiles of a queue', {
      description: 'A queue exists once it was pushed to, or set, and is removed when nobody has used it for an hour.',
      query: STATS_QUERY,
      answers: { 200: { description: 'The queue.', schema: schemas.queueReport } },
      problems: [404, 503],
      handle: ({ params, query }) => report(params.queue, query),
    }),
    route('PATCH /v1/queues/{queue}', 'changeQueue', 'Pause or resume a queue, change its settings', {
      description:
        'What is not given stays; a change without a setting makes no queue. Settings are kept in the store and ' +
        "hold for every process. They are an operator's, which programs cannot change, unless `by` is `code`.",
      body: schemas.queueChange,
      answers: { 200: { description: 'The queue.', schema: schemas.queueReport } },
      problems: [404, 501, 503],
      handle: async ({ request, params, body: { limits, by = 'operator', ...body } }) => {
        const queue = checkQueueName(params.queue)
        if (limits) needsLimits(store, limits, 'limits')
        const settings = { ...body, ...limitSettings(limits === null ? {} : limits), queue, by }
        if (!setsNothing(settings)) {
          await queueLimit.admit(queue)
          await store.operations.configure(settings)
          if (by === 'operator') acted(request, settingsAction(queue, { ...body, ...defined({ limits }) }))
        }
        return report(queue)
      },
    }),
    route('DELETE /v1/queues/{queue}', 'removeQueue', 'Remove a queue and all that it has', {
      description:
        'Its jobs of every state, settings, groups and figures. A request removes a bounded number of jobs: send ' +
        'it again while `more` is true. A later push makes the queue again.',
      answers: { 200: { description: 'The jobs are gone.', schema: schemas.removedQueue } },
      problems: [404, 501, 503],
      handle: async ({ request, params }) => {
        const removed = await remove(params.queue)
        acted(request, { action: 'removeQueue', queue: params.queue, count: removed.removed })
        return removed
      },
    }),
    route('GET /v1/queues/{queue}/settings', 'getSettings', 'Every setting of a queue, and who has set it', {
      description: 'A queue that does not exist has the defaults.',
      answers: { 200: { description: 'The settings.', schema: schemas.settingList } },
      problems: [503],
      handle: async ({ params }) => ({ settings: await pond.queue(params.queue).settings() }),
    }),
    route('GET /v1/queues/{queue}/groups', 'listGroups', 'Groups with waiting or running jobs or limits of their own', {
      description:
        'By name; the jobs without a group are the group of the empty name. None where groups take no turns.',
      query: GROUPS_QUERY,
      answers: { 200: { description: 'A page.', schema: schemas.groupList } },
      problems: [404, 501, 503],
      handle: async ({ params, query: { limit = 20, ...query } }) => {
        const groups = await pond.queue(params.queue).groups({ limit, ...query })
        if (groups.length === 0) await mustExist(store, params.queue)
        return { groups, next: groups.length < limit ? undefined : groups.at(-1)?.group }
      },
    }),
    route('PATCH /v1/queues/{queue}/groups', 'changeGroup', 'Give a group limits of its own, or take them away', {
      description:
        'They replace those of its own that it has: what is left out or null is as the queue has it for its ' +
        'groups. With the name alone the group has none of its own. Groups take turns from then on.',
      body: schemas.groupChange,
      answers: { 200: { description: 'The group.', schema: schemas.group } },
      problems: [501, 503],
      handle: async ({ request, params, body: { group, ...limits } }) => {
        const queue = pond.queue(params.queue)
        needs(store, 'groups', 'groups')
        await queueLimit.admit(queue.name)
        await queue.limitGroup(group, Object.values(limits).some((one) => one !== null) ? limits : null)
        acted(request, { action: 'limitGroup', queue: queue.name, group })
        const [shown] = await store.operations.groups({ queue: queue.name, group, limit: 1 })
        return shown ?? { group, limits: null, waiting: 0, running: 0, nextStart: null }
      },
    }),
    route('GET /v1/queues/{queue}/jobs', 'listJobs', 'Jobs in one state', {
      description:
        'Waiting ones by priority, then oldest first, scheduled and running ones soonest first, final ones newest ' +
        'first. All filters that are given must hold; with one, a page may be short or empty although `next` is ' +
        'given.',
      requiredQuery: LIST_STATE,
      query: JOBS_QUERY,
      answers: { 200: { description: 'A page.', schema: schemas.jobList } },
      problems: [404, 501, 503],
      handle: ({ params, query }) => page(params.queue, query),
    }),
    route('POST /v1/queues/{queue}/requeue', 'requeueDead', 'Send all dead jobs of a queue back to waiting', {
      description: 'With all their attempts. Those whose key a live job has taken stay.',
      requiredHeaders: { 'x-requested-with': schemas.REQUESTED_WITH },
      body: schemas.nothing,
      bodyOptional: true,
      answers: { 200: { description: 'They wait.', schema: schemas.requeued } },
      problems: [404, 503],
      handle: async ({ request, params }) => {
        const requeued = await pond.queue(params.queue).requeue()
        if (requeued === 0) await mustExist(store, params.queue)
        acted(request, { action: 'requeueAll', queue: params.queue, count: requeued })
        return { requeued }
      },
    }),
  ]

  async function report(name: string, query?: Members<Record<never, never>, typeof STATS_QUERY>): Promise<object> {
    const found = await pond.queue(name).stats(query)
    if (Object.values(found.counts).every((count) => count === 0)) await mustExist(store, name)
    return reportView(found)
  }

  async function page(name: string, given: Members<typeof LIST_STATE, typeof JOBS_QUERY>): Promise<object> {
    const { state, limit = 20, ...options } = given
    const { after: from, ...query } = jobsQuery(store, checkQueueName(name), state, { limit, ...options })
    const jobs: object[] = []
    let bytes = 0
    let after = from
    for (let looks = 1; ; looks++) {
      const asked = Math.min(MAX_JOBS_PER_CALL, limit - jobs.length)
      const got = await store.operations.list({ ...query, limit: asked, ...defined({ after }) })
      for (const record of got.jobs) {
        const job = jobInfo(record)
        jobs.push(listView(job))
        bytes += sizeOf(job.data) + sizeOf(job.result) + sizeOf(job.progress)
        // Also in the midst of what was got: together the jobs may be more than one answer holds.
        if (jobs.length >= limit || bytes > MAX_PAGE_BYTES) return { jobs, next: record.cursor }
      }
      if (got.next === null) {
        if (jobs.length === 0) await mustExist(store, name)
        return { jobs }
      }
      after = got.next
      if (looks >= MAX_LOOKS && jobs.length === 0) return { jobs, next: after }
    }
  }

  async function remove(name: string): Promise<{ removed: number; more: boolean }> {
    const queue = checkQueueName(name)
    needs(store, 'remove', 'the removal of a queue')
    await mustExist(store, queue)
    let total = 0
    for (;;) {
      const { removed, more } = await store.operations.remove({ queue, limit: REMOVED_PER_CALL })
      total += removed
      if (!more || total >= MAX_REMOVED) return { removed: total, more }
    }
  }
}

/** A pause alone is told of as one. */
function settingsAction(queue: string, given: object): Acted {
  const settings = Object.keys(given)
  const paused = settings.length === 1 && 'paused' in given ? given.paused : undefined
  if (paused === undefined) return { action: 'override', queue, settings }
  return { action: paused === true ? 'pause' : 'resume', queue }
}

/** Asked only where there is nothing to show, so that other answers cost no more. @throws Refusal: 404, QueueUnknown */
export async function mustExist(store: Store, queue: string): Promise<void> {
  const [there] = await store.operations.stats({ queue, minutes: 0 })
  if (there === undefined) throw new Refusal(404, 'There is no such queue.', { code: 'QueueUnknown' })
}

export function listView(job: JobInfo): object {
  const { data, key, group, cost, worker, error } = job
  const more = Object.entries({ data: data === undefined ? null : data, key, group, cost, worker, error })
  return { ...jobView({ ...job, log: [] }), ...Object.fromEntries(more.filter(([, value]) => value !== null)) }
}

function reportView(report: QueueReport): object {
  // Without the percentiles that were not measured: MessagePack has no undefined.
  return JSON.parse(jsonText(report))
}

/** About how many bytes a value takes in an answer. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (types.isUint8Array(value)) return value.byteLength
  if (typeof value !== 'object' || value === null) return 8
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + sizeOf(item), 8)
}
