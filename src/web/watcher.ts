/**
 * Watches jobs for their followers, with one watch per job however many follow it.
 *
 * A look is a read of the job. It happens:
 *   - when the job is final: `pond.result` learns it from the store's bells, from any process;
 *   - at each event of the pond about the job: this process works on it;
 *   - every LOOK_INTERVAL: for progress made in another process there is no bell. All looks of a round are asked for in one tick,
 *     so that a store can read them in one call.
 *
 * A look that finds no change is passed only to followers that came since the last one. Otherwise each new follower of a job with
 * thousands would cost as much as all of them.
 */
import type { JobReader } from '../pond/internals.ts'
import type { Millpond } from '../pond/millpond.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import { isFinal } from './job-view.ts'
import { rendered } from './rendered-job.ts'

/** Milliseconds between two rounds, from the end of one to the next. */
const LOOK_INTERVAL = 500
const EVENTS = ['started', 'failed', 'completed', 'dead', 'cancelled', 'lost'] as const

export interface Follower {
  /** Called with the job at the first look, and at each look that finds it changed; undefined: the store does not know it any more. */
  seen(job: JobInfo | undefined): void
  /** The store or the pond failed for good; there are no further calls. */
  failed(error: unknown): void
}

type WatchedPond = Pick<Millpond, 'job' | 'on'> & Pick<JobReader, 'result'>

export class Watcher {
  readonly #pond: WatchedPond
  readonly #watches = new Map<string, Watch>()
  #timer: NodeJS.Timeout | undefined
  #unlisten: (() => void)[] = []

  constructor(pond: WatchedPond) {
    this.#pond = pond
  }

  /** @returns a function that ends it */
  follow(id: string, follower: Follower): () => void {
    const watch = this.#watches.get(id) ?? this.#begin(id)
    watch.followers.add(follower)
    watch.newcomers.add(follower)
    // The job may have changed since the caller read it.
    void watch.look()
    return () => {
      watch.followers.delete(follower)
      watch.newcomers.delete(follower)
      if (watch.followers.size === 0 && this.#watches.get(id) === watch) this.#end(id, watch)
    }
  }

  #begin(id: string): Watch {
    const watch = new Watch(this.#pond, id)
    this.#watches.set(id, watch)
    if (this.#watches.size === 1) {
      const happened = (event: { id: string }) => void this.#watches.get(event.id)?.look()
      this.#unlisten = EVENTS.map((name) => this.#pond.on(name, happened))
      this.#planRound()
    }
    return watch
  }

  #end(id: string, watch: Watch): void {
    this.#watches.delete(id)
    watch.end()
    if (this.#watches.size > 0) return
    clearTimeout(this.#timer)
    for (const unlisten of this.#unlisten.splice(0)) unlisten()
  }

  #planRound(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(async () => {
      await Promise.all([...this.#watches.values()].map((watch) => watch.look()))
      if (this.#watches.size > 0) this.#planRound()
    }, LOOK_INTERVAL)
  }
}

/** The watch of one job. */
class Watch {
  readonly followers = new Set<Follower>()
  /** The followers that were not called yet. */
  newcomers = new Set<Follower>()
  readonly #pond: WatchedPond
  readonly #id: string
  readonly #ended = new AbortController()
  /** The tag of the job at the last call; undefined: there was none, or it has no tag. */
  #shown: string | undefined
  #looking: Promise<void> | undefined
  /** Something happened during a look, which may have been too early to see it. */
  #again = false

  constructor(pond: WatchedPond, id: string) {
    this.#pond = pond
    this.#id = id
    const { signal } = this.#ended
    // The look shows how the job ended, with a result or an error.
    const over = () => void (signal.aborted || this.look())
    pond.result(id, { signal }).then(over, over)
  }

  end(): void {
    this.#ended.abort()
  }

  /** Resolves when the job has been read; never rejects. */
  look(): Promise<void> {
    if (this.#looking !== undefined) this.#again = true
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #read(): Promise<void> {
    do {
      this.#again = false
      try {
        const job = await this.#pond.job(this.#id)
        this.#pass(job)
        if (job === undefined || isFinal(job)) return
      } catch (error) {
        // A store that fails only for now is asked again in the next round.
        if (isMillpondError(error) && error.retryable) return
        for (const follower of this.followers) follower.failed(error)
        return
      }
    } while (this.#again && this.followers.size > 0)
  }

  /** Calls the followers that a look concerns. */
  #pass(job: JobInfo | undefined): void {
    const tag = tagOf(job)
    const concerned = tag === undefined || tag !== this.#shown ? this.followers : this.newcomers
    this.#shown = tag
    this.newcomers = new Set()
    for (const follower of concerned) follower.seen(job)
  }
}

/** Changes with all that followers see of the job; undefined if it cannot be shown, which is for the follower to find out. */
function tagOf(job: JobInfo | undefined): string | undefined {
  try {
    return job === undefined ? '' : rendered(job).tag
  } catch {
    return undefined
  }
}
