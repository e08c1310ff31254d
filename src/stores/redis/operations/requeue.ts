/** Gives dead and cancelled jobs another life. */
import type { RequeueDeadRequest, Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import { chunks, MAX_CHANGES_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { idBytes, numberIn, textIn } from '../wire.ts'

export function requeue(context: StoreContext, request: RequeueRequest): Promise<Requeued> {
  return 'ids' in request ? requeueIds(context, request.ids, request.forget) : requeueDead(context, request)
}

async function requeueIds(context: StoreContext, ids: readonly string[], forget?: number): Promise<Requeued> {
  const requeued = { requeued: 0, now: 0 }
  const head = forget === undefined ? [] : [null, null, null, forget]
  for (const some of chunks(ids.map(idBytes), MAX_CHANGES_PER_CALL)) {
    for (let left = some; left.length > 0; ) {
      const step = await requeueStep(context, { head, items: left })
      requeued.requeued += step.back
      requeued.now ||= step.now
      left = left.slice(left.length - step.left)
    }
  }
  return requeued
}

/**
 * Jobs whose key is taken are passed over, so that they cannot fill the limit and hide others for ever. Jobs that die again meanwhile are
 * not brought back again.
 */
async function requeueDead(context: StoreContext, { queue, limit, until }: RequeueDeadRequest): Promise<Requeued> {
  const requeued = { requeued: 0, now: 0 }
  for (let passed = 0; requeued.requeued < limit; ) {
    const most = Math.min(limit - requeued.requeued, MAX_CHANGES_PER_CALL)
    const head = [most, passed, until ?? (requeued.now || null)]
    const { back, stayed, now, left } = await requeueStep(context, { queue, head })
    requeued.now ||= now
    requeued.requeued += back
    passed += stayed
    if (back + stayed < most && left === 0) break
  }
  return requeued
}

async function requeueStep(
  context: StoreContext,
  call: { queue?: string; head?: readonly (number | null)[]; items?: readonly Buffer[] },
) {
  const answer = await callScript(context, 'requeue', { ...call, safe: true })
  const [back = 0, stayed = 0, now = 0, left = 0] = answer.slice(0, 4).map(numberIn)
  for (const queue of answer.slice(4)) context.notifier.local.ring('work', textIn(queue))
  return { back, stayed, now, left }
}
