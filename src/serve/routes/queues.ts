/** Queues as those who run them see them. */

import { JOB_STATES, setsNothing } from '../../store.ts'
import type { JobInfo } from '../../values/job.ts'
import { checkQueueName } from '../../values/names.ts'
import { defined } from '../../values/options.ts'
import { answer } from '../../web/answer.ts'
import * as schemas from '../api-schemas.ts'
import { type Route, route } from '../route.ts'
import { integer, oneOf, type Query } from '../schema.ts'
import { listView, reportView } from '../views.ts'
import { type Parts, REQUESTED_WITH } from './parts.ts'

const MINUTES = integer(1, 60, { description: 'How far back the percentiles look.', default: 5 })
const LIST_QUERY = {
  state: oneOf(JOB_STATES, { description: 'Their state.', default: 'dead' }),
  limit: integer(1, 100, { description: 'Most jobs of a page.', default: 20 }),
  after: { ...schemas.id, description: '`next` of the page before.' },
}
/** Jobs asked for in a call, and bytes after which a page ends: it is put together in memory. */
const MAX_JOBS_PER_CALL = 10
const MAX_PAGE_BYTES = 4 * 1024 * 1024

export function queueRoutes({ store, pond, queueLimit }: Parts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/queues',
      id: 'listQueues',
      tag: 'queues',
      summary: 'Counts and percentiles of every queue',
      query: { minutes: MINUTES },
      answers: { 200: { description: 'The queues.', schema: schemas.queueList } },
      problems: [503],
      handle: async ({ request, query }) => {
        const queues = (await pond.stats(query)).map(reportView)
        return answer(request, { queues })
      },
    }),
    route({
      method: 'GET',
      path: '/v1/queues/{queue}',
      id: 'getQueue',
      tag: 'queues',
      summary: 'Counts and percentiles of a queue',
      description:
        'A queue exists once it was pushed to, or set, and is removed when nobody has used it for an hour. Where there is none, all counts are 0.',
      query: { minutes: MINUTES },
      answers: { 200: { description: 'The queue.', schema: schemas.queueReport } },
      problems: [503],
      handle: async ({ request, params, query }) => {
        const report = await pond.queue(params.queue ?? '').stats(query)
        return answer(request, reportView(report))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/queues/{queue}',
      id: 'changeQueue',
      tag: 'queues',
      summary: 'Pause or resume a queue, change its settings',
      description:
        'What is not given stays; a change without a setting makes no queue. Settings are kept in the store and hold for every process.',
      body: { schema: schemas.queueChange, required: true },
      answers: { 200: { description: 'The queue.', schema: schemas.queueReport } },
      problems: [503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const settings = { ...body, queue }
        if (!setsNothing(settings)) {
          await queueLimit.admit(queue)
          await store.configure(settings)
        }
        return answer(request, reportView(await pond.queue(queue).stats()))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/queues/{queue}/jobs',
      id: 'listJobs',
      tag: 'queues',
      summary: 'Jobs in one state, the dead ones unless another is named',
      description:
        'Waiting ones in the order of claiming, scheduled and running ones soonest first, final ones newest first.',
      query: LIST_QUERY,
      answers: { 200: { description: 'A page.', schema: schemas.jobList } },
      problems: [503],
      handle: async ({ request, params, query }) => {
        const { jobs, next } = await page(params.queue ?? '', query)
        return answer(request, { jobs: jobs.map(listView), next })
      },
    }),
    route({
      method: 'POST',
      path: '/v1/queues/{queue}/requeue',
      id: 'requeueDead',
      tag: 'queues',
      summary: 'Send all dead jobs of a queue back to waiting',
      description: 'With all their attempts. Those whose key a live job has taken stay.',
      headers: { 'x-requested-with': REQUESTED_WITH },
      body: { schema: schemas.nothing, required: false },
      answers: { 200: { description: 'They wait.', schema: schemas.requeued } },
      problems: [503],
      handle: async ({ request, params }) => {
        const requeued = await pond.queue(params.queue ?? '').requeue()
        return answer(request, { requeued })
      },
    }),
  ]

  async function page(name: string, query: Query<typeof LIST_QUERY>): Promise<{ jobs: JobInfo[]; next?: string }> {
    const { state = 'dead', limit = 20 } = query
    const queue = pond.queue(name)
    const jobs: JobInfo[] = []
    let bytes = 0
    let after = query.after?.toLowerCase()
    for (;;) {
      const asked = Math.min(MAX_JOBS_PER_CALL, limit - jobs.length)
      const got = await queue.jobs(state, { limit: asked, ...defined({ after }) })
      jobs.push(...got)
      after = got.at(-1)?.id
      if (got.length < asked || after === undefined) return { jobs }
      bytes += got.reduce((sum, job) => sum + sizeOf(job.data) + sizeOf(job.result) + sizeOf(job.progress), 0)
      if (jobs.length >= limit || bytes > MAX_PAGE_BYTES) return { jobs, next: after }
    }
  }
}

/** About how many bytes a value takes in an answer. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (value instanceof Uint8Array) return value.byteLength
  if (typeof value !== 'object' || value === null) return 8
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + sizeOf(item), 8)
}
