/** The service itself: its health and its description. */
import { jsonText } from '../../web/answer.ts'
import { metricsAnswer } from '../../web/metrics.ts'
import * as schemas from '../api-schemas.ts'
import { type Route, type RouteContext, route } from '../route.ts'

/** Milliseconds that a read of the store is reused: any client may ask, and must not keep the store busy. */
const HEALTH_TTL = 1000
/** A queue that does not exist; stores answer for it without reading any job. */
const UNUSED_QUEUE = 'healthz'

const WORKERS_QUERY = { queue: schemas.queueName }

export function serviceRoutes({ store, pond, metrics }: RouteContext, document: () => object): Route[] {
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<unknown> = Promise.resolve()

  return [
    route('GET /healthz', 'getHealth', 'Whether the service and its store can be reached', {
      open: true,
      answers: { 200: { description: 'They can.', schema: schemas.health } },
      handle: async () => {
        const now = performance.now()
        if (now - readAt > HEALTH_TTL) {
          readAt = now
          reading = store.operations.stats({ queue: UNUSED_QUEUE, minutes: 0 })
        }
        await reading
        return { status: 'ok' }
      },
    }),
    route('GET /metrics', 'getMetrics', 'Metrics for Prometheus', {
      description: 'Of all queues of the store, and of the calls of this process to it. docs/metrics.md lists them.',
      answers: { 200: { description: 'The text format of Prometheus.', media: 'text/plain' } },
      handle: ({ request }) => metricsAnswer(metrics, request),
    }),
    route('GET /v1/workers', 'listWorkers', 'The workers that were heard of in the last minute', {
      description:
        'Of every process and language, longest known first. One that claims from several queues has an entry for each.',
      query: WORKERS_QUERY,
      answers: { 200: { description: 'The workers.', schema: schemas.workerList } },
      problems: [501, 503],
      // MessagePack has other dates.
      handle: async ({ query }) => JSON.parse(jsonText({ workers: await pond.workers(query) })),
    }),
    route('GET /openapi.json', 'getOpenApi', 'This document', {
      answers: { 200: { description: 'OpenAPI 3.1.', schema: { type: 'object' } } },
      problems: [],
      handle: () => JSON.parse(jsonText(document())),
    }),
  ]
}
