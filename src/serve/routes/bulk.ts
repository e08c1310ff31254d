/** One change to all jobs of a queue that match, a request at a time. */

import { searchText } from '../../pond/action-detail.ts'
import { previewBulk, runBulk } from '../../pond/bulk.ts'
import { bulkPlan } from '../../pond/bulk-options.ts'
import { defined } from '../../values/options/options.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import * as schemas from '../bulk-schemas.ts'
import { msOf } from '../json-schema.ts'
import { type Route, type RouteContext, route } from '../route.ts'
import { listView, MAX_PAGE_BYTES, mustExist, sizeOf } from './queues.ts'

/** Milliseconds after which a request ends, and says where the next one goes on. */
const LONGEST = 2000
const MAX_CHANGES = 10_000

export function bulkRoutes({ store, sweeper, acted }: RouteContext): Route[] {
  return [
    route(
      'POST /v1/queues/{queue}/changes',
      'changeJobs',
      'Change all jobs that match: first a dry run, then in steps',
      {
        description:
          'All filters that are given must hold. A request works for 2 s and changes 10,000 jobs at most: while the ' +
          'answer has `next`, send the same request with it as `after`. Only jobs are taken that were there at the first ' +
          'request, so none is changed twice, and what is pushed meanwhile stays.',
        body: schemas.bulkChange,
        answers: { 200: { description: 'How far it came, or what would be changed.', schema: schemas.bulkAnswer } },
        problems: [404, 501, 503],
        handle: async ({ request, params, body }) => {
          const queue = checkQueueName(params.queue)
          const { action, dryRun = false, after, limit = MAX_CHANGES, priority, delay, runAt, ...filter } = body
          const due = runAt === undefined ? undefined : msOf(runAt)
          const plan = bulkPlan(store, {
            ...{ queue, verb: action, filter, options: { dryRun, after, limit } },
            change: { priority, delay, runAt: due },
          })
          const signal = AbortSignal.any([request.signal, AbortSignal.timeout(LONGEST)])
          const bounded = { ...plan, options: { ...plan.options, signal } }
          if (dryRun) {
            const preview = await previewBulk(store, bounded)
            if (preview.count === 0) await mustExist(store, queue)
            let bytes = 0
            const shown = preview.sample.filter((job) => {
              bytes += sizeOf(job.data) + sizeOf(job.result) + sizeOf(job.progress)
              return bytes <= MAX_PAGE_BYTES
            })
            return { ...preview, sample: shown.map(listView) }
          }
          const report = await runBulk(store, bounded)
          if (report.looked === 0) await mustExist(store, queue)
          const [state, ...others] = plan.states
          const detail = searchText({ ...filter, state: others.length === 0 ? state : undefined })
          acted(request, { action: `${action}All`, queue, count: report.changed, ...defined({ detail }) })
          if (delay !== undefined) sweeper.due(delay)
          else if (due !== undefined) sweeper.due(Math.max(0, due - Date.now()))
          return defined(report)
        },
      },
    ),
  ]
}
