import type { Input } from '../../../store.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import type { StoreContext } from '../context.ts'
import { type SentSchedule, scheduleFrom } from './schedules.ts'

interface Answer extends Omit<Swept, 'schedules'> {
  now: number
  /** Queues in which jobs became waiting. */
  work: string[]
  schedules: { now: number; due: SentSchedule[] } | null
}

export async function sweep({ calls, notifier }: StoreContext, { limit }: Input<'sweep'>): Promise<Swept> {
  const { now: _, work, schedules, ...swept } = await calls.answer<Answer>('sweep($1, $2)', [limit, calls.now()])
  for (const queue of work) notifier.bells.ring('work', queue)
  for (const { id, queue, state } of swept.lost) if (state === 'dead') notifier.bells.ring('finished', queue, id)
  const due = schedules && { now: schedules.now, due: schedules.due.map(scheduleFrom) }
  return { ...swept, schedules: due }
}
