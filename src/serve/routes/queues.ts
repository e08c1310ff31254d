/** Queues as those who run them see them. */
import type { JobInfo } from '../../job.ts'
import { checkQueueName } from '../../names.ts'
import { JOB_STATES, type JobState, type QueueSettings, setsNothing } from '../../store.ts'
import { answer } from '../../web/answer.ts'
import { type Parameter, type Route, route } from '../route.ts'
import * as shapes from '../shapes.ts'
import { listView, reportView } from '../views.ts'
import { type Parts, REQUESTED_WITH } from './parts.ts'

interface ListQuery {
  state?: JobState
  limit?: number
  after?: string
}
interface QueueChange {
  paused?: boolean
  capacity?: number | null
  /** Milliseconds. */
  keepDone?: number
  keepDead?: number
}

const MINUTES: Parameter = {
  description: 'How far back the percentiles look.',
  schema: { type: 'integer', minimum: 1, maximum: 60, default: 5 },
}
/** Jobs asked for in a call, and bytes after which a page ends: it is put together in memory. */
const BITE = 10
const BYTES = 4 * 1024 * 1024

export function queueRoutes({ store, pond, queueLimit }: Parts): Route[] {
  return [
    route<undefined, { minutes?: number }>({
      method: 'GET',
      path: '/v1/queues',
      id: 'listQueues',
      tag: 'queues',
      summary: 'Counts and percentiles of every queue',
      query: { minutes: MINUTES },
      answers: { 200: { description: 'The queues.', schema: shapes.queueList } },
      problems: [503],
      handle: async ({ request, query }) => {
        const queues = (await pond.stats(query)).map(reportView)
        return answer(request, { queues })
      },
    }),
    route<undefined, { minutes?: number }>({
      method: 'GET',
      path: '/v1/queues/{queue}',
      id: 'getQueue',
      tag: 'queues',
      summary: 'Counts and percentiles of a queue',
      description:
        'A queue exists once it was pushed to, or set, and is removed when nobody has used it for an hour. Where there is none, all counts are 0.',
      query: { minutes: MINUTES },
      answers: { 200: { description: 'The queue.', schema: shapes.queueReport } },
      problems: [503],
      handle: async ({ request, params, query }) => {
        const report = await pond.queue(params.queue ?? '').stats(query)
        return answer(request, reportView(report))
      },
    }),
    route<QueueChange>({
      method: 'PATCH',
      path: '/v1/queues/{queue}',
      id: 'changeQueue',
      tag: 'queues',
      summary: 'Pause or resume a queue, change its settings',
      description:
        'What is not given stays; a change without a setting makes no queue. Settings are kept in the store and hold for every process.',
      body: { schema: shapes.queueChange, required: true },
      answers: { 200: { description: 'The queue.', schema: shapes.queueReport } },
      problems: [413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const settings = settingsOf(queue, body)
        if (!setsNothing(settings)) {
          await queueLimit.admit(queue)
          await store.configure(settings)
        }
        return answer(request, reportView(await pond.queue(queue).stats()))
      },
    }),
    route<undefined, ListQuery>({
      method: 'GET',
      path: '/v1/queues/{queue}/jobs',
      id: 'listJobs',
      tag: 'queues',
      summary: 'Jobs in one state, the dead ones unless another is named',
      description:
        'Waiting ones in the order of claiming, scheduled and running ones soonest first, final ones newest first.',
      query: {
        state: { description: 'Their state.', schema: { type: 'string', enum: JOB_STATES, default: 'dead' } },
        limit: {
          description: 'Most jobs of a page.',
          schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
        },
        after: { description: '`next` of the page before.', schema: shapes.id },
      },
      answers: { 200: { description: 'A page.', schema: shapes.jobList } },
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
      body: { schema: shapes.nothing, required: false },
      answers: { 200: { description: 'They wait.', schema: shapes.requeued } },
      problems: [413, 415, 422, 503],
      handle: async ({ request, params }) => {
        const requeued = await pond.queue(params.queue ?? '').requeue()
        return answer(request, { requeued })
      },
    }),
  ]

  async function page(name: string, query: ListQuery): Promise<{ jobs: JobInfo[]; next?: string }> {
    const { state = 'dead', limit = 20 } = query
    const queue = pond.queue(name)
    const jobs: JobInfo[] = []
    let bytes = 0
    let after = query.after?.toLowerCase()
    for (;;) {
      const asked = Math.min(BITE, limit - jobs.length)
      const bite = await queue.jobs(state, { limit: asked, ...(after === undefined ? {} : { after }) })
      jobs.push(...bite)
      after = bite.at(-1)?.id
      if (bite.length < asked || after === undefined) return { jobs }
      bytes += bite.reduce((sum, job) => sum + sizeOf(job.data) + sizeOf(job.result) + sizeOf(job.progress), 0)
      if (jobs.length >= limit || bytes > BYTES) return { jobs, next: after }
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

function settingsOf(queue: string, { paused, capacity, keepDone, keepDead }: QueueChange): QueueSettings {
  return {
    queue,
    ...(paused === undefined ? {} : { paused }),
    ...(capacity === undefined ? {} : { capacity }),
    ...(keepDone === undefined ? {} : { keepDone }),
    ...(keepDead === undefined ? {} : { keepDead }),
  }
}
