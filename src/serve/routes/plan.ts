/** How many workers a queue wants, in the form that autoscalers read. */
import { checkQueueName } from '../../values/settings/names.ts'
import * as schemas from '../api-schemas.ts'
import { integer } from '../json-schema.ts'
import { PlanHolds } from '../plan-holds.ts'
import { type Route, type RouteContext, route } from '../route.ts'

const HOUR = 3_600_000
/** Milliseconds: as long as the Kubernetes autoscaler looks back before it removes pods. */
const HOLD = 300_000
const MINUTE = 60_000

const PLAN_QUERY = {
  minutes: integer(1, 60, { description: 'How far back the measurements go.', default: 5 }),
  drainWithin: integer(1, HOUR, {
    description: 'Milliseconds within which the backlog is to be done.',
    default: MINUTE,
  }),
  wait: integer(1, HOUR, {
    description: 'Milliseconds that a job may wait on average; as long as it runs unless given.',
  }),
  hold: integer(0, HOUR, { description: 'Milliseconds for which a higher number is kept.', default: HOLD }),
}

export function planRoutes({ pond }: RouteContext): Route[] {
  const holds = new PlanHolds()
  return [
    route('GET /v1/queues/{queue}/plan', 'planQueue', 'How many workers the queue needs', {
      description:
        'From the starts and run times that were measured, and the backlog. `workers` rises at once, and falls to ' +
        'the most that was wanted within `hold`. An autoscaler such as KEDA reads `workers`.',
      query: PLAN_QUERY,
      answers: { 200: { description: 'The plan.', schema: schemas.queuePlan } },
      problems: [501, 503],
      handle: async ({ params, query: { hold = HOLD, ...query } }) => {
        const queue = checkQueueName(params.queue)
        const { workers: wanted, load, utilization, drain, wait, measured } = await pond.queue(queue).plan(query)
        const { rate, work, backlog } = measured
        const key = JSON.stringify([queue, hold, query])
        const workers = holds.held(key, wanted, hold, performance.now())
        return { queue, workers, wanted, load, utilization, drain, wait, rate, work, backlog }
      },
    }),
  ]
}
