/** Jobs that wait for each other. */

import type { GraphJob } from '../../pond/push/push-all.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { isId } from '../../values/jobs/ids.ts'
import { parentsFrom } from '../../values/jobs/parent-jobs.ts'
import { defined } from '../../values/options/options.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import { answer } from '../../web/answer.ts'
import { findJob } from '../../web/follow.ts'
import { traceParent } from '../../web/headers.ts'
import { derivedId, keyOf, scopeOf } from '../../web/idempotency.ts'
import { refuseUnknownJob } from '../../web/problem.ts'
import * as api from '../api-schemas.ts'
import * as schemas from '../graph-schemas.ts'
import { msOf } from '../json-schema.ts'
import { type Route, type RouteContext, route } from '../route.ts'
import { MAX_PAGE_BYTES, sizeOf } from './queues.ts'

export function graphRoutes({ store, pond, sweeper, queueLimit }: RouteContext): Route[] {
  return [
    route('POST /v1/graphs', 'pushGraph', 'Push jobs that wait for each other', {
      description:
        'All of them are stored, or none. A full queue refuses them all. Sent again with the same Idempotency-Key, or ' +
        'with the ids of the jobs, it stores nothing twice.',
      headers: { 'idempotency-key': api.IDEMPOTENCY_KEY, traceparent: api.TRACE },
      body: schemas.newGraph,
      answers: { 202: { description: 'The store has all jobs.', schema: api.pushedMany } },
      problems: [409, 413, 501, 503],
      handle: async ({ request, body }) => {
        const jobs = await jobsOf(request, body.jobs)
        return answer(request, { jobs: await pond.pushAll(jobs) }, { status: 202 })
      },
    }),
    route('GET /v1/jobs/{id}/graph', 'jobGraph', 'The jobs that are connected with a job by waiting for each other', {
      query: schemas.GRAPH_QUERY,
      answers: { 200: { description: 'They, and how many are in each state.', schema: schemas.graph } },
      problems: [404, 501, 503],
      handle: async ({ params, query }) => {
        const graph = isId(params.id) ? await pond.graph(params.id, query) : undefined
        return graph ?? refuseUnknownJob()
      },
    }),
    route('GET /v1/jobs/{id}/parents', 'jobParents', 'What the jobs that a job has waited for came to', {
      description: 'For its worker. A page may be shorter than its limit.',
      query: schemas.PARENTS_QUERY,
      answers: { 200: { description: 'A page.', schema: schemas.parentList } },
      problems: [404, 501, 503],
      handle: async ({ params, query }) => {
        const { id } = (await findJob(pond, params.id)) ?? refuseUnknownJob()
        return parentsPage(id, query)
      },
    }),
  ]

  async function parentsPage(id: string, { limit = 100, after }: { limit?: number; after?: string }): Promise<object> {
    const jobs: object[] = []
    let bytes = 0
    for await (const parent of parentsFrom(store, id, after?.toLowerCase())) {
      const { error, result, queue, ...facts } = parent
      const shown = error === null ? undefined : { name: error.name, message: error.message, code: error.code }
      jobs.push({ ...facts, ...defined({ queue: queue ?? undefined, result, error: shown }) })
      bytes += sizeOf(result)
      if (jobs.length >= limit || bytes > MAX_PAGE_BYTES) return { jobs, next: parent.id }
    }
    return { jobs }
  }

  async function jobsOf(request: Request, given: readonly schemas.GraphJobBody[]): Promise<GraphJob[]> {
    const names = [...new Set(given.map(({ queue }) => checkQueueName(queue)))]
    if (names.length > schemas.MAX_QUEUES) {
      const message = `the jobs of a request may be of ${schemas.MAX_QUEUES} queues; these are of ${names.length}`
      throw new MillpondError('InvalidOption', message)
    }
    for (const name of names) await queueLimit.admit(name)
    const queues = new Map(names.map((name) => [name, pond.queue(name)]))
    const key = keyOf(request)
    const scope = await scopeOf(request, undefined, true)
    const trace = traceParent(request)
    return given.map(({ queue: name, data, runAt, id, ...options }, index) => {
      const at = runAt === undefined ? undefined : Math.max(0, msOf(runAt) ?? 0)
      if (options.delay !== undefined) sweeper.due(options.delay)
      else if (at !== undefined) sweeper.due(Math.max(0, at - Date.now()))
      const own = id ?? (key === undefined ? undefined : derivedId(name, scope, JSON.stringify([key, index])))
      return [queues.get(name) ?? pond.queue(name), data, { ...options, ...defined({ id: own, runAt: at, trace }) }]
    })
  }
}
