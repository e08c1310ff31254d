/**
 * Watches jobs for those who follow them, one watch per job however many do.
 *
 * That a job is final comes from `pond.result`, which is woken by the store's bells, from any process. What happens on the way is seen at
 * once when this process works on the job (the pond's events), and otherwise by a look every half second: progress made elsewhere
 * rings no bell. All looks of a round are asked for in the same turn, so that stores can carry them in one trip.
 *
 * A look that finds nothing new is told only to those who have come since the last one: were everybody told, each who comes to a job that
 * thousands follow would cost as much as all who are there.
 */

import type { Millpond } from '../pond/millpond.ts'
import { isMillpondError } from '../values/errors.ts'
import type { JobInfo } from '../values/job.ts'
import { jsonText } from './answer.ts'
import { isFinal, jobView } from './view.ts'

/** Milliseconds between two rounds, from the end of one to the next. */
const LOOK_INTERVAL = 500
const EVENTS = ['started', 'failed', 'completed', 'dead', 'cancelled', 'lost'] as const

export interface Follower {
  /** Called with the job as the first look finds it, and whenever a later one finds it changed; undefined: the store knows it no longer. */
  seen(job: JobInfo | undefined): void
  /** The watch is over: the store or the pond failed for good. */
  failed(error: unknown): void
}

interface Watch {
  followers: Set<Follower>
  /** Of the followers, those who have not been told anything yet. */
  newcomers: Set<Follower>
  /** What the others were told last, as text; undefined: nothing, or something that no text shows. */
  told: string | undefined
  result: AbortController
  looking: Promise<void> | undefined
  /** Something happened during a look, which may have come too early to see it. */
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
      watch = { followers: new Set(), newcomers: new Set(), told: undefined, result, looking: undefined, again: false }
      this.#watches.set(id, watch)
      this.#awaitResult(id, watch)
      if (this.#watches.size === 1) this.#begin()
    }
    watch.followers.add(follower)
    watch.newcomers.add(follower)
    // The job may have changed since whoever asks looked at it.
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
      // What it came to is told by the look, whether it was a result or an error.
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
        tell(watch, job)
        if (job === undefined || isFinal(job)) return
      } catch (error) {
        // A store that is only away for now is asked again in the next round.
        if (isMillpondError(error) && error.retryable) return
        for (const follower of watch.followers) follower.failed(error)
        return
      }
    } while (watch.again && watch.followers.size > 0)
  }
}

function tell(watch: Watch, job: JobInfo | undefined): void {
  const text = textOf(job)
  const changed = text === undefined || text !== watch.told
  const concerned = changed ? watch.followers : watch.newcomers
  watch.told = text
  watch.newcomers = new Set()
  for (const follower of concerned) follower.seen(job)
}

/** All that those who follow a job can see of it; undefined where it cannot be shown, which is theirs to find out. */
function textOf(job: JobInfo | undefined): string | undefined {
  try {
    return jsonText(job === undefined ? null : jobView(job))
  } catch {
    return undefined
  }
}
