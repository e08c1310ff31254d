/** Gives dead and cancelled jobs another life. */

import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import type { Partition } from '../partition.ts'
import { answered, askEach, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { idBytes, numberIn } from '../wire.ts'
import { find } from './find.ts'

export async function requeue(
  context: Context,
  request: { ids: readonly string[] } | { queue: string; limit: number },
): Promise<number> {
  context.calls.assertOpen()
  let count = 0
  if ('ids' in request) {
    const found = (await find(context, request.ids)).filter((one) => one !== null)
    const answers = await askEach(
      found,
      ({ partition }) => partition,
      async (partition, own) => {
        const ids = own.map(({ record }) => idBytes(record.id))
        const { back, left } = await requeueIn(context, partition, 0, 0, ids)
        count += back
        return ids.slice(left).map(() => true)
      },
    )
    answered(answers)
  } else {
    const { queues } = context
    for (const partition of (await queues.listed(request.queue)) ?? (await queues.look(request.queue)))
      count += await requeueDead(context, partition, request.limit - count)
  }
  return count
}

/** Those whose key is taken are passed over, so that they cannot fill the limit and hide others for ever. */
async function requeueDead(context: Context, partition: Partition, limit: number): Promise<number> {
  let count = 0
  for (let passed = 0; count < limit; ) {
    const most = Math.min(limit - count, MAX_ITEMS_PER_CALL)
    const { back, stayed, left } = await requeueIn(context, partition, most, passed, [])
    count += back
    passed += stayed
    if (back + stayed < most && left === 0) break
  }
  return count
}

async function requeueIn(context: Context, partition: Partition, limit: number, from: number, ids: readonly Buffer[]) {
  const answer = await callScript(context, 'requeue', partition, { head: [limit, from], items: ids, safe: true })
  const [back = 0, stayed = 0, left = 0] = answer.map(numberIn)
  if (back > 0) context.notifier.local.ring('work', partition.queue)
  return { back, stayed, left }
}
