import type { Input, Swept } from '../../../store.ts'
import type { StoreContext } from '../context.ts'

interface Answer extends Omit<Swept, 'schedules'> {
  now: number
  /** Queues in which jobs became waiting. */
  work: string[]
}

export async function sweep({ calls, notifier }: StoreContext, { limit }: Input<'sweep'>): Promise<Swept> {
  const { now: _, work, ...swept } = await calls.answer<Answer>('sweep($1, $2)', [limit, calls.now()])
  for (const queue of work) notifier.bells.ring('work', queue)
  for (const { id, queue, state } of swept.lost) if (state === 'dead') notifier.bells.ring('finished', queue, id)
  return { ...swept, schedules: null }
}
