/** A push of all or none: whether all of its jobs could be stored, before any is. */
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { isRefused, standsFor, waits } from '../jobs.ts'
import { isFinal, Job } from './job.ts'
import { FOLLOWS, meet } from './meeting.ts'
import type { MemoryQueue } from './queue.ts'
import type { MemoryState } from './state.ts'

/** @returns the answers, if one job cannot be stored; undefined: all can */
export function refusals(state: MemoryState, jobs: readonly NewJob[]): PushOutcome[] | undefined {
  const plan = new Plan(state)
  const outcomes = jobs.map((job) => plan.add(job))
  if (!outcomes.some(isRefused)) return undefined
  const isChange = ({ status, id }: PushOutcome) =>
    status === 'pushed' || status === 'replaced' || (status === 'existing' && plan.adds(id))
  return outcomes.map((outcome, index) =>
    isChange(outcome) ? { status: 'withheld', id: jobs[index]?.id ?? outcome.id } : outcome,
  )
}

/** What the store would hold after some jobs of the push. */
class Plan {
  readonly #state: MemoryState
  readonly #now: number
  /** The jobs that would be stored, and whether they would be cancelled at once. */
  readonly #added = new Map<string, 'live' | 'cancelled'>()
  /** By queue and key, those that would have a key, or follow another job. */
  readonly #keys = new Map<string, { id: string; follows: boolean }>()
  readonly #rooms = new Map<MemoryQueue, number>()
  readonly #others = new Map<string, string>()

  constructor(state: MemoryState) {
    this.#state = state
    this.#now = state.now()
  }

  adds(id: string): boolean {
    return this.#added.has(id)
  }

  add(job: NewJob): PushOutcome {
    const outcome = this.#outcomeOf(job)
    if (standsFor(outcome, job)) this.#others.set(job.id, outcome.id)
    return outcome
  }

  #outcomeOf(job: NewJob): PushOutcome {
    const { id, key, after = [], partOf, onDead = 'cancel' } = job
    const queue = this.#state.findOrCreate(job.queue)
    if (this.#state.jobs.get(id) !== undefined || this.#added.has(id)) return { status: 'existing', id }
    const named = `${job.queue}\0${key}`
    const met = key === null ? undefined : (this.#meet(job, named) ?? meet(queue, job, key, this.#now))
    if (met instanceof Job) return { status: 'replaced', id: met.id }
    if (met !== undefined && met !== FOLLOWS) return met
    const room = this.#rooms.get(queue) ?? queue.room
    if (room <= 0) return { status: 'full', id }
    const states = after.map((parent) => this.#stateOf(parent))
    const parent = after[states.indexOf(undefined)]
    if (parent !== undefined) return { status: 'orphan', id, parent }
    const its = partOf === undefined ? 'live' : this.#stateOf(partOf)
    if (partOf !== undefined && its !== 'live') return { status: 'orphan', id, parent: partOf }
    const isCancelled = onDead === 'cancel' && states.some((state) => state === 'dead' || state === 'cancelled')
    this.#added.set(id, isCancelled ? 'cancelled' : 'live')
    if (isCancelled) return { status: 'pushed', id }
    this.#rooms.set(queue, room - 1)
    if (key !== null) this.#keys.set(named, { id, follows: met === FOLLOWS })
    return { status: 'pushed', id }
  }

  /** What it would find of the jobs before it. None of them runs. */
  #meet(job: NewJob, named: string): PushOutcome | undefined {
    const known = this.#keys.get(named)
    if (known === undefined) return undefined
    if (waits(job)) return known.follows ? undefined : { status: 'held', id: known.id }
    const { once } = job
    if (once?.replace === true || (known.follows && once?.follow === true)) return { status: 'replaced', id: known.id }
    // Else the key is that of the job which it follows.
    return known.follows ? undefined : { status: 'existing', id: known.id }
  }

  #stateOf(given: string): 'live' | 'done' | 'dead' | 'cancelled' | undefined {
    const id = this.#others.get(given) ?? given
    const stored = this.#state.jobs.get(id)?.state
    return stored === undefined ? this.#added.get(id) : isFinal(stored) ? stored : 'live'
  }
}
