/** Gives dead and cancelled jobs another life. */

import type { RequeueDeadRequest, Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { answered, askEach, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { idBytes, numberIn } from '../wire.ts'
import { findWithPlaces } from './find.ts'

export async function requeue(context: StoreContext, request: RequeueRequest): Promise<Requeued> {
  context.calls.assertOpen()
  return 'ids' in request ? requeueIds(context, request.ids) : requeueDead(context, request)
}

async function requeueIds(context: StoreContext, ids: readonly string[]): Promise<Requeued> {
  const requeued = { requeued: 0, now: 0 }
  const found = (await findWithPlaces(context, ids)).filter((one) => one !== null)
  const answers = await askEach(
    found,
    ({ partition }) => partition,
    async (partition, own) => {
      const items = own.map(({ record }) => idBytes(record.id))
      const { back, now, left } = await requeueIn(context, partition, [0, 0], items)
      requeued.requeued += back
      requeued.now = Math.max(requeued.now, now)
      return items.slice(left).map(() => true)
    },
  )
  answered(answers)
  return requeued
}

/**
 * Those whose key is taken are passed over, so that they cannot fill the limit and hide others for ever. Those that die again
 * meanwhile are not brought back again.
 */
async function requeueDead(context: StoreContext, { queue, limit, until }: RequeueDeadRequest): Promise<Requeued> {
  let requeued = 0
  let first: number | undefined
  const { queues } = context
  for (const partition of (await queues.listed(queue)) ?? (await queues.look(queue))) {
    for (let passed = 0; requeued < limit; ) {
      const most = Math.min(limit - requeued, MAX_ITEMS_PER_CALL)
      const { back, stayed, now, left } = await requeueIn(
        context,
        partition,
        [most, passed, until ?? first ?? null],
        [],
      )
      first ??= now
      requeued += back
      passed += stayed
      if (back + stayed < most && left === 0) break
    }
  }
  return { requeued, now: first ?? 0 }
}

async function requeueIn(
  context: StoreContext,
  partition: Partition,
  head: (number | null)[],
  items: readonly Buffer[],
) {
  const answer = await callScript(context, 'requeue', partition, { head, items, safe: true })
  const [back = 0, stayed = 0, now = 0, left = 0] = answer.map(numberIn)
  if (back > 0) context.notifier.local.ring('work', partition.queue)
  return { back, stayed, now, left }
}
