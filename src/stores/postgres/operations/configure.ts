import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import type { Context } from '../notifier.ts'

export async function configure({ calls, notifier }: Context, settings: QueueSettings): Promise<void> {
  if (setsNothing(settings)) return
  const { queue, capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff, ...limits } = settings
  const limited = Object.values(limits).some((limit) => limit !== undefined)
  await calls.done('configure($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)', [
    ...[queue, capacity !== undefined, capacity, keepDone, keepDead, paused, attempts],
    ...[timeout !== undefined, timeout, lease],
    ...[backoff?.base, backoff?.factor, backoff?.max, backoff?.jitter, limited ? JSON.stringify(limits) : null],
  ])
  if (capacity !== undefined) notifier.bells.ring('room', queue)
  if (paused === false || limited) notifier.bells.ring('work', queue)
}

export async function limitGroup(
  { calls, notifier }: Context,
  queue: string,
  group: string,
  limits: GroupLimits | null,
): Promise<void> {
  await calls.done('limit_group($1, $2, $3)', [queue, group, limits === null ? null : JSON.stringify(limits)])
  notifier.bells.ring('work', queue)
}
