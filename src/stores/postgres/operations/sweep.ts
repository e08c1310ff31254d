import type { Swept } from '../../../store.ts'
import { IdleQueues } from '../../idle.ts'
import type { Context } from '../notifier.ts'
import { textArray } from '../wire.ts'

/** Ms between looks for idle queues. */
const LOOK_EVERY = 60_000
const MAX_IDLE_QUEUES = 10_000

interface Answer extends Swept {
  now: number
  /** Queues in which jobs became waiting. */
  work: string[]
}

export function sweep({ calls, notifier }: Context): (limit: number) => Promise<Swept> {
  const idle = new IdleQueues()
  /** When idle queues were last looked for, by the store's clock. */
  let looked = Number.NEGATIVE_INFINITY

  async function removeIdle(now: number): Promise<void> {
    if (Math.abs(now - looked) < LOOK_EVERY) return
    looked = now
    const names = idle.found(await calls.answers<string>('idle_queues($1)', [MAX_IDLE_QUEUES]), now)
    if (names.length > 0) await calls.answers('remove_queues($1)', [textArray(names)])
  }

  return async (limit) => {
    const { now, work, ...swept } = await calls.answer<Answer>('sweep($1, $2)', [limit, calls.now()])
    for (const queue of work) notifier.bells.ring('work', queue)
    for (const { id, queue, state } of swept.lost) if (state === 'dead') notifier.bells.ring('finished', queue, id)
    // What was lost is told by the answer alone; idle queues can wait.
    await removeIdle(now).catch(() => undefined)
    return swept
  }
}
