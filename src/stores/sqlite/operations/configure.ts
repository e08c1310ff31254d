import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { Context } from '../queues.ts'

export function configure({ statements, queues }: Context, settings: QueueSettings): void {
  if (setsNothing(settings)) return
  const { queue, capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = settings
  queues.write()
  statements.get('configure/configure').run({
    queue,
    set_capacity: capacity === undefined ? 0 : 1,
    capacity: capacity ?? null,
    keep_done: keepDone ?? null,
    keep_dead: keepDead ?? null,
    paused: paused === undefined ? null : Number(paused),
    attempts: attempts ?? null,
    set_timeout: timeout === undefined ? 0 : 1,
    timeout: timeout ?? null,
    lease: lease ?? null,
    backoff_base: backoff?.base ?? null,
    backoff_factor: backoff?.factor ?? null,
    backoff_max: backoff?.max ?? null,
    backoff_jitter: backoff?.jitter ?? null,
  })
  const { bells } = queues.findOrCreate(queue)
  if (capacity !== undefined) bells.add('room')
  if (paused === false) bells.add('work')
}
