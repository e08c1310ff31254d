import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { Context } from '../context.ts'

export async function configure({ calls, notifier }: Context, settings: QueueSettings): Promise<void> {
  if (setsNothing(settings)) return
  const { queue, capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = settings
  await calls.answer('configure($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)', [
    ...[queue, capacity !== undefined, capacity, keepDone, keepDead, paused, attempts],
    ...[timeout !== undefined, timeout, lease],
    ...[backoff?.base, backoff?.factor, backoff?.max, backoff?.jitter],
  ])
  if (capacity !== undefined) notifier.bells.ring('room', queue)
  if (paused === false) notifier.bells.ring('work', queue)
}
