/** Operations that change something. Each needs the right `operator` for the queue, and is told of by the event `action`. */
import { changeText } from '../pond/action-detail.ts'
import type { GroupLimitOptions } from '../pond/limits.ts'
import { checkSettingNames, type OverrideOptions } from '../pond/queue-options.ts'
import type { UpdateOptions } from '../pond/update.ts'
import type { JobState } from '../values/jobs/records.ts'
import { checkObject, checkOptions, defined, type Rules } from '../values/options/options.ts'
import type { SettingName } from '../values/settings/settings.ts'
import { Refusal, refuseUnknownJob } from '../web/problem.ts'
import { type Call, mustNotBeLog, mustOperate } from './context.ts'
import { isJob, isName } from './reads.ts'

const isAny = (): boolean => true
const isArray = (value: unknown): boolean | string => Array.isArray(value) || 'an array'

const ofQueue = (body: object, where: string) =>
  checkOptions<{ queue: string }>(body as { queue: string }, { queue: isName }, where, ['queue']).queue

export async function pause(call: Call, body: object): Promise<object> {
  const queue = ofQueue(body, 'pause')
  await call.operated(queue)
  await call.pond.queue(queue).pause()
  await call.acted('pause', queue)
  return {}
}

export async function resume(call: Call, body: object): Promise<object> {
  const queue = ofQueue(body, 'resume')
  await call.operated(queue)
  await call.pond.queue(queue).resume()
  await call.acted('resume', queue)
  return {}
}

/** Sets settings as an operator. */
export async function override(call: Call, body: object): Promise<object> {
  type Body = { queue: string; settings: OverrideOptions }
  const rules: Rules<Body> = { queue: isName, settings: isAny }
  const { queue, settings } = checkOptions<Body>(body as Body, rules, 'override', ['queue', 'settings'])
  await call.operated(queue)
  const own = call.pond.queue(queue)
  const before = await own.settings()
  await own.override(settings)
  const detail = changeText(before, await own.settings())
  await call.acted('override', queue, { settings: Object.keys(settings), ...defined({ detail }) })
  return {}
}

/** Gives settings back to code. */
export async function clear(call: Call, body: object): Promise<object> {
  type Body = { queue: string; names: SettingName[] }
  const { queue, names } = checkOptions<Body>(body as Body, { queue: isName, names: isArray }, 'clear', [
    'queue',
    'names',
  ])
  await call.operated(queue)
  const own = call.pond.queue(queue)
  const before = await own.settings()
  await own.clearOverrides(checkSettingNames(names))
  const detail = changeText(before, await own.settings())
  await call.acted('clear', queue, { settings: names, ...defined({ detail }) })
  return {}
}

export async function limitGroup(call: Call, body: object): Promise<object> {
  type Body = { queue: string; group: string; limits: GroupLimitOptions | null }
  const rules: Rules<Body> = { queue: isName, group: (value) => typeof value === 'string', limits: isAny }
  const { queue, group, limits } = checkOptions<Body>(body as Body, rules, 'limitGroup', ['queue', 'group', 'limits'])
  await call.operated(queue)
  await call.pond.queue(queue).limitGroup(group, limits)
  await call.acted('limitGroup', queue, { group })
  return {}
}

/** A job of a queue that the caller may change. @throws Refusal: 403, 404 */
async function operatedJob(call: Call, body: object, where: string) {
  const { id } = checkOptions<{ id: string }>(body as { id: string }, { id: isJob }, where, ['id'])
  const { record, may } = await call.job(id)
  mustOperate(may)
  mustNotBeLog(record.queue)
  return record
}

export async function requeue(call: Call, body: object): Promise<object> {
  const { id, queue, state } = await operatedJob(call, body, 'requeue')
  if ((await call.pond.queue(queue).requeue([id])) === 0) {
    const isOver = state === 'dead' || state === 'cancelled'
    throw new Refusal(409, `The job stays as it is: ${isOver ? 'a live job has its key' : `it is ${state}`}.`)
  }
  await call.acted('requeue', queue, { id })
  return {}
}

export async function cancel(call: Call, body: object): Promise<object> {
  const { id, queue, state: before } = await operatedJob(call, body, 'cancel')
  const state = (await call.pond.cancel(id)) ?? refuseUnknownJob()
  if (state !== 'cancelled' || before === 'cancelled') throw new Refusal(409, `The job stays as it is: it is ${state}.`)
  await call.acted('cancel', queue, { id })
  return {}
}

export async function remove(call: Call, body: object): Promise<object> {
  const { id, queue } = await operatedJob(call, body, 'remove')
  if ((await call.pond.queue(queue).remove([id])) === 0) refuseUnknownJob()
  await call.acted('remove', queue, { id })
  return {}
}

/** Changes a job that does not run yet. `delay: 0` runs it now. */
export async function update(call: Call, body: object): Promise<object> {
  type Body = { id: string; change: UpdateOptions }
  const { id, change } = checkOptions<Body>(body as Body, { id: isJob, change: isAny }, 'update', ['id', 'change'])
  checkObject(change, 'update')
  const { record, may } = await call.job(id)
  mustOperate(may)
  mustNotBeLog(record.queue)
  if (change.data !== undefined && !may.payloads)
    throw new Refusal(403, 'You may not see payloads of this queue, nor write them.')
  const { redaction } = call.context
  if (change.data !== undefined && !redaction.at('data').isEmpty) {
    throw new Refusal(403, 'Parts of the payloads are not shown here, so they cannot be written.')
  }
  const outcome: JobState | 'updated' | undefined = await call.pond.queue(record.queue).update(id, change)
  if (outcome === undefined) refuseUnknownJob()
  if (outcome !== 'updated') throw new Refusal(409, `The job stays as it is: it is ${outcome}.`)
  const isPromotion = change.delay === 0 && Object.keys(defined(change)).length === 1
  await call.acted(isPromotion ? 'promote' : 'update', record.queue, { id })
  return {}
}
