/** The events of a worker's attempts. */

import type { AttemptEvent, PondEmitter, Timings } from '../values/jobs/events.ts'
import type { Attempt } from './attempt.ts'
import { EncodedResult } from './encoded-result.ts'
import type { Ending } from './ending.ts'
import type { EndingOutcome } from './ending-batches.ts'

export function attemptEvents(queue: string, emitter: PondEmitter) {
  const eventOf = ({ claimed: { id, attempt, priority } }: Attempt): AttemptEvent => ({ queue, id, attempt, priority })
  const timingsOf = (attempt: Attempt): AttemptEvent & Timings => {
    return { ...eventOf(attempt), wait: attempt.wait, run: attempt.run }
  }
  return {
    started(attempt: Attempt): void {
      if (emitter.has('started')) emitter.emit('started', { ...eventOf(attempt), wait: attempt.wait })
    },
    stale(attempt: Attempt): void {
      emitter.emit('stale', eventOf(attempt))
    },
    /** @param outcome the store's, of the ending */
    ended(ending: Ending, outcome: EndingOutcome): void {
      const { attempt } = ending
      if (outcome === 'stale') {
        if (ending.kind !== 'release') emitter.emit('stale', eventOf(attempt))
      } else if (ending.kind === 'release') {
        if (ending.pause) emitter.emit('rateLimited', { ...eventOf(attempt), pause: ending.pause })
      } else if (ending.kind !== 'fail') {
        if (!emitter.has('completed')) return
        emitter.emit('completed', { ...timingsOf(attempt), result: EncodedResult.valueOf(ending.value) })
      } else if (outcome === 'dead') emitter.emit('dead', { ...eventOf(attempt), error: ending.error })
      else emitter.emit('failed', { ...timingsOf(attempt), error: ending.error })
    },
  }
}
