/**
 * Watches jobs for their followers, with one watch per job however many follow it.
 *
 * A look is a read of the job. It happens:
 *   - when the job is final: `pond.result` learns it from the store's notifications, from any process;
 *   - at each event of the pond about the job: this process works on it;
 *   - every LOOK_INTERVAL: for progress made in another process there is no notification. All looks of a round are asked for in one turn,
 *     so that a store can read them in one call.
 *
 * A look that finds no change is passed only to followers that came since the last one. Otherwise each new follower of a job with
 * thousands would cost as much as all of them.
 */
import type { Millpond } from '../pond/millpond.ts'
import { isMillpondError } from '../values/errors.ts'
import type { JobInfo } from '../values/job.ts'
import { jsonText } from './answer.ts'
import { isFinal, jobView } from './job-view.ts'

/** Milliseconds between two rounds, from the end of one to the next. */
const LOOK_INTERVAL = 500
const EVENTS = ['started', 'failed', 'completed', 'dead', 'cancelled', 'lost'] as const

export interface Follower {
  /** Called with the job at the first look, and at each look that finds it changed; undefined: the store does not know it any more. */
  seen(job: JobInfo | undefined): void
  /** The store or the pond failed for good; there are no further calls. */
  failed(error: unknown): void
}

interface Watch {
  followers: Set<Follower>
  /** The followers that were not called yet. */
  newcomers: Set<Follower>
  /** The job at the last call, as text; undefined: there was none, or it has no text. */
  shown: string | undefined
  result: AbortController
  looking: Promise<void> | undefined
  /** Something happened during a look, which may have been too early to see it. */
  again: boolean
}

export class Watcher {
  readonly #pond: Pick<Millpond, 'job' | 'result' | 'on'>
  readonly #watches = new Map<string, Watch>()
  #timer: NodeJS.Timeout | undefined
  #unlisten: (() => void)[] = []

  constructor(pond: Pick<Millpond, 'job' | 'result' | 'on'>) {
    this.#pond = pond
  }

  /** @returns a function that ends it */
  follow(id: string, follower: Follower): () => void {
    let watch = this.#watches.get(id)
    if (watch === undefined) {
      const result = new AbortController()
      watch = { followers: new Set(), newcomers: new Set(), shown: undefined, result, looking: undefined, again: false }
      this.#watches.set(id, watch)
      this.#awaitResult(id, watch)
      if (this.#watches.size === 1) this.#begin()
    }
    watch.followers.add(follower)
    watch.newcomers.add(follower)
    // The job may have changed since the caller read it.
    void this.#look(id, watch)
    return () => this.#leave(id, watch, follower)
  }

  #leave(id: string, watch: Watch, follower: Follower): void {
    watch.followers.delete(follower)
    watch.newcomers.delete(follower)
    if (watch.followers.size > 0 || this.#watches.get(id) !== watch) return
    this.#watches.delete(id)
    watch.result.abort()
    if (this.#watches.size === 0) this.#end()
  }

  #begin(): void {
    this.#unlisten = EVENTS.map((name) => this.#pond.on(name, ({ id }: { id: string }) => this.#happened(id)))
    this.#plan()
  }

  #end(): void {
    clearTimeout(this.#timer)
    for (const unlisten of this.#unlisten.splice(0)) unlisten()
  }

  #plan(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const looks = [...this.#watches].map(([id, watch]) => this.#look(id, watch))
      void Promise.all(looks).then(() => {
        if (this.#watches.size > 0) this.#plan()
      })
    }, LOOK_INTERVAL)
  }

  #happened(id: string): void {
    const watch = this.#watches.get(id)
    if (watch !== undefined) void this.#look(id, watch)
  }

  #awaitResult(id: string, watch: Watch): void {
    const over = () => {
      // The look shows how it ended, with a result or an error.
      if (this.#watches.get(id) === watch) void this.#look(id, watch)
    }
    this.#pond.result(id, { signal: watch.result.signal }).then(over, over)
  }

  /** Resolves when the job has been looked at; never rejects. */
  #look(id: string, watch: Watch): Promise<void> {
    if (watch.looking !== undefined) {
      watch.again = true
      return watch.looking
    }
    watch.looking = this.#lookNow(id, watch).finally(() => {
      watch.looking = undefined
    })
    return watch.looking
  }

  async #lookNow(id: string, watch: Watch): Promise<void> {
    do {
      watch.again = false
      try {
        const job = await this.#pond.job(id)
        pass(watch, job)
        if (job === undefined || isFinal(job)) return
      } catch (error) {
        // A store that fails only for now is asked again in the next round.
        if (isMillpondError(error) && error.retryable) return
        for (const follower of watch.followers) follower.failed(error)
        return
      }
    } while (watch.again && watch.followers.size > 0)
  }
}

/** Calls the followers that a look concerns. */
function pass(watch: Watch, job: JobInfo | undefined): void {
  const text = textOf(job)
  const changed = text === undefined || text !== watch.shown
  const concerned = changed ? watch.followers : watch.newcomers
  watch.shown = text
  watch.newcomers = new Set()
  for (const follower of concerned) follower.seen(job)
}

/** All that followers see of the job; undefined if it cannot be shown, which is for the follower to find out. */
function textOf(job: JobInfo | undefined): string | undefined {
  try {
    return jsonText(job === undefined ? null : jobView(job))
  } catch {
    return undefined
  }
}
