/** Schedules: what they are, when they fire next, and what an operator does with one. The right for its queue counts. */
import { internalsOf } from '../pond/internals.ts'
import { type ScheduleInfo, scheduleInfo } from '../pond/schedules.ts'
import { checkObject, checkOptions, defined } from '../values/options/options.ts'
import { firingId } from '../values/schedules/firing.ts'
import type { ScheduleRecord } from '../values/schedules/records.ts'
import { timesOf } from '../values/schedules/times.ts'
import { Refusal } from '../web/problem.ts'
import { type Call, mustOperate } from './context.ts'
import { bodyView } from './payload.ts'
import { isText } from './reads.ts'
import type { FiringRow, May, SchedulePage, ScheduleRow } from './views.ts'

/** Times that are shown ahead, and past ones. */
const TIMES = 5
const HISTORY = 20

const isAny = (): boolean => true

export async function schedules(call: Call, body: object): Promise<{ schedules: ScheduleRow[] }> {
  checkOptions(body, {}, 'schedules')
  const all = await call.pond.schedules.list()
  const rows = await Promise.all(all.map((schedule) => row(call, schedule)))
  return { schedules: rows.filter((one) => one !== undefined) }
}

/** undefined: the caller may not see its queue. */
async function row(call: Call, schedule: ScheduleInfo): Promise<ScheduleRow | undefined> {
  const { name, when, tz, queue, paused, nextAt, lastAt, declared } = schedule
  const may = call.caller.may(call.store, queue)
  if (may === undefined) return undefined
  const { words, times } = await call.pond.schedules.preview(when, { tz, count: TIMES })
  const next = nextAt === null ? [] : times.map((time) => time.getTime()).filter((at) => at > nextAt.getTime())
  return {
    ...{ name, when, tz, queue, paused, declared, words, may },
    nextAt: nextAt?.getTime() ?? null,
    lastAt: lastAt?.getTime() ?? null,
    // By this machine's clock; the first one is the store's.
    times: nextAt === null ? [] : [nextAt.getTime(), ...next].slice(0, TIMES),
  }
}

/** One schedule, with its data and what became of the jobs of its last times. */
export async function schedule(call: Call, body: object): Promise<SchedulePage> {
  const name = nameIn(body, 'schedule')
  const record = await call.pond.schedules.find(name)
  const shown = record && (await row(call, scheduleInfo(record)))
  if (record === undefined || shown === undefined) throw new Refusal(404, 'There is no such schedule.')
  const { missed, jitter, job } = record
  const data = shown.may.payloads
    ? bodyView(job.data, call.context.redaction.at('data'))
    : ({ state: 'locked' } as const)
  return { ...shown, missed, jitter, hasKey: job.key !== null, data, history: await history(call, record) }
}

/** The ids of its jobs are made of its name and the times. */
async function history({ pond }: Call, record: ScheduleRecord): Promise<FiringRow[]> {
  const { name, nextAt, job } = record
  const { operations, capabilities } = internalsOf(pond).store
  if (!capabilities.find) return []
  const until = Math.min(Date.now() + 1, nextAt ?? Number.MAX_SAFE_INTEGER)
  const times = timesOf(record).before(until, HISTORY).reverse()
  const ids = times.map((time) => firingId(name, time).id)
  const found = await operations.find({ ids })
  return times.flatMap((at, index): FiringRow[] => {
    const [id, known] = [ids[index], found[index]]
    if (id === undefined) return []
    // A job of that id in another queue is somebody else's.
    return [{ at, id, state: known != null && known.queue === job.queue ? known.state : null }]
  })
}

/** What a line would mean. */
export async function previewSchedule(call: Call, body: object): Promise<{ words: string; times: number[] }> {
  type Body = { when: string; tz?: string }
  const { when, tz } = checkOptions<Body>(body as Body, { when: isText, tz: isText }, 'previewSchedule', ['when'])
  const { words, times } = await call.pond.schedules.preview(when, { ...defined({ tz }), count: TIMES })
  return { words, times: times.map((time) => time.getTime()) }
}

export async function changeSchedule(call: Call, body: object): Promise<object> {
  type Body = { name: string; change: { when?: string; tz?: string; data?: unknown } }
  const { change: given } = checkOptions<Body>(body as Body, { name: isText, change: isAny }, 'changeSchedule', [
    'name',
    'change',
  ])
  checkObject(given, 'changeSchedule')
  const { name, queue, may } = await operated(call, { name: (body as Body).name }, 'changeSchedule')
  const change = checkOptions(given, { when: isText, tz: isText, data: isAny }, 'change')
  if (change.data !== undefined && !may.payloads)
    throw new Refusal(403, 'You may not see payloads of this queue, nor write them.')
  if (change.data !== undefined && !call.context.redaction.at('data').isEmpty)
    throw new Refusal(403, 'Parts of the payloads are not shown here, so they cannot be written.')
  const done = await call.pond.schedules.change(name, change)
  if (done === undefined) throw new Refusal(404, 'There is no such schedule.')
  if (done.outcome === 'kept')
    throw new Refusal(
      409,
      'It was so before, and was changed less than 90 s ago by who declares it now. Try again later.',
    )
  await call.acted('changeSchedule', queue, { schedule: name })
  return { outcome: done.outcome }
}

function nameIn(body: object, where: string): string {
  return checkOptions<{ name: string }>(body as { name: string }, { name: isText }, where, ['name']).name
}

/** @throws Refusal: 403, 404 */
async function operated(call: Call, body: object, where: string): Promise<{ name: string; queue: string; may: May }> {
  const name = nameIn(body, where)
  const known = (await call.pond.schedules.list()).find((schedule) => schedule.name === name)
  const may = known && call.caller.may(call.store, known.queue)
  if (known === undefined || may === undefined) throw new Refusal(404, 'There is no such schedule.')
  mustOperate(may)
  return { name, queue: known.queue, may }
}

export async function pauseSchedule(call: Call, body: object): Promise<object> {
  const { name, queue } = await operated(call, body, 'pauseSchedule')
  await call.pond.schedules.pause(name)
  await call.acted('pauseSchedule', queue, { schedule: name })
  return {}
}

export async function resumeSchedule(call: Call, body: object): Promise<object> {
  const { name, queue } = await operated(call, body, 'resumeSchedule')
  await call.pond.schedules.resume(name)
  await call.acted('resumeSchedule', queue, { schedule: name })
  return {}
}

/** Pushes its job now, beside its times. */
export async function runSchedule(call: Call, body: object): Promise<object> {
  const { name, queue } = await operated(call, body, 'runSchedule')
  const pushed = await call.pond.schedules.run(name)
  if (pushed === undefined) throw new Refusal(404, 'There is no such schedule.')
  await call.acted('runSchedule', queue, { schedule: name, id: pushed.id })
  return { id: pushed.id, existing: pushed.existing }
}

export async function removeSchedule(call: Call, body: object): Promise<object> {
  const { name, queue } = await operated(call, body, 'removeSchedule')
  await call.pond.schedules.remove(name)
  await call.acted('removeSchedule', queue, { schedule: name })
  return {}
}
