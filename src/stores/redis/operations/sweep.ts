/** What time alone brings about: contract/redis/sweep.lua. */
import type { Input } from '../../../store.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import { chunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, idText, numberIn, textIn, timeOrNull, unexpected } from '../wire.ts'
import { schedulesIn } from './schedules.ts'

const DEAD = 1

export async function sweep(context: StoreContext, { limit }: Input<'sweep'>): Promise<Swept> {
  const { calls, notifier, evictionWatch, where } = context
  void evictionWatch.look(calls.client, where)
  const answer = await callScript(context, 'sweep', { head: [limit, DEFAULTS.schedule.due] })
  const [time, promoted, expired, more, next, queues, ended, due, changed] = answer
  const now = numberIn(time)
  const lost = chunks(listIn(ended), 4).map(([id, queue, attempt, dead]) => ({
    id: idText(bytesIn(id)),
    queue: textIn(queue),
    attempt: numberIn(attempt),
    state: dead === DEAD ? ('dead' as const) : ('waiting' as const),
  }))
  for (const { id, queue, state } of lost) if (state === 'dead') notifier.local.ring('finished', queue, id)
  for (const [queue, came] of chunks(listIn(changed), 2)) if (came === 1) notifier.local.ring('work', textIn(queue))
  const schedules = schedulesIn(listIn(due), now)
  return {
    lost,
    promoted: numberIn(promoted),
    expired: numberIn(expired),
    more: more === 1,
    nextDue: timeOrNull(next),
    queues: numberIn(queues),
    schedules: schedules.length === 0 ? null : { now, due: schedules },
  }
}

function listIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw unexpected(value, 'a list')
}
