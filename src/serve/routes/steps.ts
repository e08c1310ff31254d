/** Signals to jobs, and what their steps have kept. */

import { isId } from '../../values/jobs/ids.ts'
import { jsonText } from '../../web/answer.ts'
import { refuseUnknownJob } from '../../web/problem.ts'
import { type Route, type RouteContext, route } from '../route.ts'
import * as schemas from '../step-schemas.ts'

export function stepRoutes({ pond, acted }: RouteContext): Route[] {
  return [
    route('GET /v1/jobs/{id}/steps', 'jobSteps', 'The steps of a job, and the signals that it was sent', {
      answers: { 200: { description: 'They, in order.', schema: schemas.stepList } },
      problems: [404, 501, 503],
      handle: async ({ params: { id } }) => {
        const job = isId(id) ? await pond.job(id) : undefined
        if (job === undefined) return refuseUnknownJob()
        // MessagePack has other dates.
        return JSON.parse(jsonText({ id: job.id, steps: job.steps ?? [] }))
      },
    }),
    route('POST /v1/jobs/{id}/signals/{name}', 'signalJob', 'Send a signal to a live job', {
      description: 'It is kept until a wait of the handler takes it. A parked job goes on.',
      body: schemas.newSignal,
      answers: { 200: { description: 'The job has it.', schema: schemas.signalled } },
      problems: [404, 409, 413, 501, 503],
      handle: async ({ request, params: { id, name }, body: { data } }) => {
        if (!isId(id)) return refuseUnknownJob()
        const signalled = await pond.signal(id, name, data)
        const queue = (await pond.job(signalled.id))?.queue
        if (queue !== undefined) acted(request, { action: 'signal', queue, id: signalled.id })
        return signalled
      },
    }),
    route('POST /v1/queues/{queue}/signals', 'signalKey', 'Send a signal to the live job that has a key', {
      body: schemas.keySignal,
      answers: { 200: { description: 'The job has it.', schema: schemas.signalled } },
      problems: [404, 409, 413, 501, 503],
      handle: async ({ request, params: { queue }, body: { key, name, data } }) => {
        const signalled = await pond.signal({ queue, key }, name, data)
        acted(request, { action: 'signal', queue, id: signalled.id })
        return signalled
      },
    }),
  ]
}
