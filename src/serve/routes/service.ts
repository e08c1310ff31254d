/** What the service tells of itself. */
import { answer, jsonText } from '../../web/answer.ts'
import * as schemas from '../api-schemas.ts'
import { type Route, route } from '../route.ts'
import type { Parts } from './parts.ts'

/** Milliseconds that a look at the store serves: anybody may ask, and must not keep the store busy with it. */
const LOOK_LASTS = 1000
/** A queue that nobody has; stores answer for it without looking at any job. */
const UNUSED_QUEUE = 'healthz'

export function serviceRoutes({ store }: Parts, document: () => Record<string, unknown>): Route[] {
  let looked = Number.NEGATIVE_INFINITY
  let look: Promise<unknown> = Promise.resolve()

  return [
    route({
      method: 'GET',
      path: '/healthz',
      id: 'getHealth',
      tag: 'service',
      summary: 'Whether the service and its store can be reached',
      open: true,
      answers: { 200: { description: 'They can.', schema: schemas.health } },
      problems: [503],
      handle: async ({ request }) => {
        const now = performance.now()
        if (now - looked > LOOK_LASTS) {
          looked = now
          look = store.stats({ queue: UNUSED_QUEUE, minutes: 0 })
        }
        await look
        return answer(request, { status: 'ok' })
      },
    }),
    route({
      method: 'GET',
      path: '/openapi.json',
      id: 'getOpenApi',
      tag: 'service',
      summary: 'This document',
      answers: { 200: { description: 'OpenAPI 3.1.', schema: { type: 'object' } } },
      problems: [],
      handle: ({ request }) => {
        const copy: Record<string, unknown> = JSON.parse(jsonText(document()))
        return answer(request, copy)
      },
    }),
  ]
}
