/**
 * Tells of failed attempts that nobody listens to, once for each queue and error, as a process warning (on stderr).
 *
 * A warning names the error's class, code and place, but not its message: that is the application's own text and may hold a part of the
 * payload. The message is in `pond.job(id)` and in the events `failed` and `dead`.
 */
import { sketch } from '../values/safe-error.ts'

/** Kinds that are remembered and told. A process that makes ever new ones is not to fill its memory, nor its log. */
const MOST_KINDS = 100

export class SilentFailures {
  readonly #told = new Set<string>()

  tell(queue: string, error: unknown): void {
    if (this.#told.size >= MOST_KINDS) return
    const text = sketch(error)
    // Of one of ours it is the code, and then its message, which may name the job and so be another one each time.
    const kind = `${queue} ${text.split(': ', 1)[0]}`
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    const last = this.#told.size === MOST_KINDS ? '; no further kinds are shown' : ''
    const advice = `shown once${last}; its message is in pond.job(id).error. Listen to the pond's 'failed' and 'dead' events instead`
    process.emitWarning(`a job of queue ${queue} failed: ${text} (${advice})`, {
      type: 'MillpondWarning',
      code: 'HandlerFailed',
    })
  }
}
