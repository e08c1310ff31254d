/** Schedules: declared by programs of any language, seen and held by operators. */
import { type ScheduleInfo, scheduleInfo } from '../../pond/schedules.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { defined } from '../../values/options/options.ts'
import { checkScheduleName } from '../../values/settings/names.ts'
import { Refusal } from '../../web/problem.ts'
import { nothing, REQUESTED_WITH } from '../api-schemas.ts'
import { msOf } from '../json-schema.ts'
import { type Route, type RouteContext, route } from '../route.ts'
import * as schemas from '../schedule-schemas.ts'

export function scheduleRoutes({ store, pond, queueLimit, acted }: RouteContext): Route[] {
  return [
    route('GET /v1/schedules', 'listSchedules', 'Schedules by name', {
      query: schemas.LIST_QUERY,
      answers: { 200: { description: 'A page.', schema: schemas.scheduleList } },
      problems: [501, 503],
      handle: async ({ query: { limit = 20, after } }) => {
        needs(store, 'schedules', 'schedules')
        const page = await store.operations.schedules({ limit, ...defined({ after }) })
        const next = page.length < limit ? undefined : page.at(-1)?.name
        return { schedules: page.map((record) => view(scheduleInfo(record))), next }
      },
    }),
    route('POST /v1/schedules', 'declareSchedule', 'Declare a schedule', {
      description:
        'Made, or changed if anything differs; `paused` of one that is there stays. Programs send it when they start, and every 30 ' +
        's. `kept`: another declaration has replaced this one, and was sent less than 90 s ago.',
      body: schemas.newSchedule,
      answers: { 200: { description: 'What became of it.', schema: schemas.declared } },
      problems: [501, 503],
      handle: async ({ body: { name, when, queue: queueName, data, from, until, ...options } }) => {
        const queue = pond.queue(queueName)
        needs(store, 'schedules', 'schedules')
        await queueLimit.admit(queue.name)
        const times = defined({
          from: from === undefined ? undefined : msOf(from),
          until: until === undefined ? undefined : msOf(until),
        })
        const { outcome } = await pond.schedules.declareOnce(name, when, queue, data, { ...options, ...times })
        return { name, outcome }
      },
    }),
    route('GET /v1/schedules/{name}', 'getSchedule', 'Tell of a schedule', {
      answers: { 200: { description: 'The schedule.', schema: schemas.schedule } },
      problems: [404, 501, 503],
      handle: async ({ params }) => {
        needs(store, 'schedules', 'schedules')
        const [record] = await store.operations.schedules({ limit: 1, name: checkScheduleName(params.name) })
        return record === undefined ? refuseUnknown() : view(scheduleInfo(record))
      },
    }),
    route('PATCH /v1/schedules/{name}', 'changeSchedule', 'Pause or resume a schedule', {
      description: 'The times at which it was paused are not missed.',
      body: schemas.scheduleChange,
      answers: { 200: { description: 'It is so now.', schema: schemas.changedSchedule } },
      problems: [404, 501, 503],
      handle: async ({ request, params: { name }, body: { paused } }) => {
        const queue = await queueOf(name)
        const isKnown = await (paused ? pond.schedules.pause(name) : pond.schedules.resume(name))
        if (!isKnown) return refuseUnknown()
        acted(request, { action: paused ? 'pauseSchedule' : 'resumeSchedule', queue, schedule: name })
        return { name, paused }
      },
    }),
    route('DELETE /v1/schedules/{name}', 'removeSchedule', 'Remove a schedule', {
      description: 'Its jobs stay. A program that declares it makes it again when it starts.',
      answers: { 200: { description: 'It is gone.', schema: schemas.removedSchedule } },
      problems: [404, 501, 503],
      handle: async ({ request, params: { name } }) => {
        const queue = await queueOf(name)
        if (!(await pond.schedules.remove(name))) return refuseUnknown()
        acted(request, { action: 'removeSchedule', queue, schedule: name })
        return { name, outcome: 'removed' }
      },
    }),
    route('POST /v1/schedules/{name}/run', 'runSchedule', 'Push the job of a schedule now', {
      description: 'Beside its times, even if it is paused.',
      requiredHeaders: { 'x-requested-with': REQUESTED_WITH },
      body: nothing,
      bodyOptional: true,
      answers: { 200: { description: 'The store has the job.', schema: schemas.ranSchedule } },
      problems: [404, 501, 503],
      handle: async ({ request, params: { name } }) => {
        const queue = await queueOf(name)
        const pushed = (await pond.schedules.run(name)) ?? refuseUnknown()
        acted(request, { action: 'runSchedule', queue, schedule: name, id: pushed.id })
        return pushed
      },
    }),
    route('GET /v1/schedule-preview', 'previewSchedule', 'What a line means, before it is used', {
      requiredQuery: schemas.PREVIEW_LINE,
      query: schemas.PREVIEW_QUERY,
      answers: { 200: { description: 'Its next times, and words.', schema: schemas.preview } },
      problems: [503],
      handle: async ({ query: { when, ...options } }) => {
        const { words, times } = await pond.schedules.preview(when, options)
        return { words, times: times.map((each) => each.toISOString()) }
      },
    }),
  ]

  /** @throws Refusal: 404 */
  async function queueOf(name: string): Promise<string> {
    needs(store, 'schedules', 'schedules')
    const [record] = await store.operations.schedules({ limit: 1, name: checkScheduleName(name) })
    return record?.job.queue ?? refuseUnknown()
  }
}

function refuseUnknown(): never {
  throw new Refusal(404, 'There is no such schedule.')
}

/** MessagePack has other dates. */
function view(info: ScheduleInfo): object {
  const dates = Object.entries(info).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value])
  return Object.fromEntries(dates)
}
