/**
 * Pushes that are made in one turn go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whoever came by chance.
 */
import type { NewJob, PushOutcome } from '../../store.ts'

interface Entry extends PromiseWithResolvers<PushOutcome[]> {
  jobs: readonly NewJob[]
}

export class Pusher {
  readonly #push: (jobs: readonly NewJob[]) => Promise<PushOutcome[]>
  #waiting: Entry[] = []

  constructor(push: (jobs: readonly NewJob[]) => Promise<PushOutcome[]>) {
    this.#push = push
  }

  add(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const entry: Entry = { jobs: jobs.map(copied), ...Promise.withResolvers<PushOutcome[]>() }
    this.#waiting.push(entry)
    if (this.#waiting.length === 1) queueMicrotask(() => this.#send())
    return entry.promise
  }

  #send(): void {
    const group = this.#waiting
    this.#waiting = []
    const [only] = group
    const jobs = group.length === 1 && only !== undefined ? only.jobs : group.flatMap((entry) => entry.jobs)
    this.#push(jobs).then(
      (outcomes) => {
        let from = 0
        for (const entry of group) {
          entry.resolve(outcomes.slice(from, from + entry.jobs.length))
          from += entry.jobs.length
        }
      },
      (error: unknown) => {
        for (const { reject } of group) reject(error)
      },
    )
  }
}

/** What the caller changes after the call must change nothing. */
function copied(job: NewJob): NewJob {
  const { encoding, body } = job.data
  return { ...job, data: { encoding, body: typeof body === 'string' ? body : body.slice() } }
}
