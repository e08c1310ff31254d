/** Schedules: what they are, when they fire next, and what an operator does with one. The right for its queue counts. */
import type { ScheduleInfo } from '../pond/schedules.ts'
import { checkOptions } from '../values/options.ts'
import { Refusal } from '../web/problem.ts'
import { type Call, mustOperate } from './context.ts'
import type { ScheduleRow } from './views.ts'

/** Times that are shown ahead. */
const TIMES = 5

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

/** @throws Refusal: 403, 404 */
async function operated(call: Call, body: object, where: string): Promise<{ name: string; queue: string }> {
  const rules = { name: (value: unknown) => typeof value === 'string' || 'the name of a schedule' }
  const { name } = checkOptions<{ name: string }>(body as { name: string }, rules, where, ['name'])
  const known = (await call.pond.schedules.list()).find((schedule) => schedule.name === name)
  const may = known && call.caller.may(call.store, known.queue)
  if (known === undefined || may === undefined) throw new Refusal(404, 'There is no such schedule.')
  mustOperate(may)
  return { name, queue: known.queue }
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
