/**
 * Pushes that are made in one turn go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whichever came first by chance.
 */
import { Batcher } from '../../../batch/batcher.ts'
import type { NewJob, PushOutcome } from '../../../store.ts'
import type { Context } from '../context.ts'
import { jobsText, outcomeFrom, plainArray, textArray } from '../wire.ts'

const UNLIMITED = Number.POSITIVE_INFINITY

export function push({ calls, notifier }: Context): (jobs: readonly NewJob[]) => Promise<PushOutcome[]> {
  const turn = new Batcher<readonly NewJob[], PushOutcome[]>(
    async (pushes) => {
      const outcomes = await pushAll(pushes.flat())
      let from = 0
      return pushes.map(({ length }) => {
        from += length
        return outcomes.slice(from - length, from)
      })
    },
    { items: UNLIMITED, bytes: UNLIMITED, calls: UNLIMITED },
  )

  async function pushAll(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const { call, values } = callFor(jobs, calls.now(), notifier.listener)
    let isRepeated = false
    const answer = await calls.repeatable<string[] | null>(call, values(false), () => {
      isRepeated = true
      return values(true)
    })
    const outcomes = answer?.map(outcomeFrom) ?? jobs.map(({ id }) => ({ status: 'pushed', id }) as const)
    const queuesWith = { pushed: new Set<string>(), full: new Set<string>() }
    for (const [at, { id, queue }] of jobs.entries()) {
      const outcome = outcomes[at] as PushOutcome
      // Its own job, which the first of several tries has stored: only the answer was lost.
      if (isRepeated && outcome.status === 'existing' && outcome.id === id) outcome.status = 'pushed'
      if (outcome.status === 'pushed' || outcome.status === 'full') queuesWith[outcome.status].add(queue)
    }
    for (const queue of queuesWith.pushed) notifier.bells.ring('work', queue)
    for (const queue of queuesWith.full) notifier.noted('room', queue)
    return outcomes
  }

  return async (jobs) => {
    if (jobs.length === 0) return []
    notifier.stir()
    return turn.add(jobs.map(copied), 0)
  }
}

interface PushCall {
  call: string
  /** @param again the answer was lost, so the ids may be known by now */
  values: (again: boolean) => readonly unknown[]
}

/** @param listener who wants to be told of room */
function callFor(jobs: readonly NewJob[], now: number | null, listener: string | null): PushCall {
  const [first] = jobs
  if (first === undefined || !jobs.every((job) => isAlike(job, first))) {
    const sent = (again: boolean) => jobsText(again ? jobs.map((job) => ({ ...job, fresh: false })) : jobs)
    const anyFresh = jobs.some(({ fresh }) => fresh === true)
    return {
      call: 'push_jobs($1, true, $2, $4, $3)',
      values: (again) => [sent(again), now, listener, again && anyFresh],
    }
  }
  const { queue, priority, delay, runAt, group, attempts, timeout, trace, cost = 1 } = first
  const fresh = jobs.every((job) => job.fresh === true)
  const ids = plainArray(jobs.map(({ id }) => id))
  const data = textArray(jobs.map((job) => job.data.body as string))
  const given = [queue, ids, data, priority, delay, runAt, group, attempts, timeout, trace, now, listener, cost]
  return {
    call: 'push_list($1, $2, $3, $4::smallint, $5, $6, $7, $8, $9, $10, true, $11, $14, $15, $12, $13)',
    values: (again) => [...given, fresh && !again, fresh && again],
  }
}

/** Whether the job differs in id and data alone from another that has no key, and its data is JSON. */
function isAlike(job: NewJob, other: NewJob): boolean {
  return (
    job.data.encoding === 'json' &&
    typeof job.data.body === 'string' &&
    job.key === null &&
    job.queue === other.queue &&
    job.priority === other.priority &&
    job.delay === other.delay &&
    job.runAt === other.runAt &&
    job.attempts === other.attempts &&
    job.group === other.group &&
    (job.cost ?? 1) === (other.cost ?? 1) &&
    job.timeout === other.timeout &&
    job.trace === other.trace
  )
}

/** What the caller changes after the call must change nothing. */
function copied(job: NewJob): NewJob {
  const { encoding, body } = job.data
  return { ...job, data: { encoding, body: typeof body === 'string' ? body : body.slice() } }
}
