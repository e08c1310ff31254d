/**
 * Pushes that are made in one turn go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whichever came first by chance.
 */
import { Batcher } from '../../../batch/batcher.ts'
import type { NewJob, PushOutcome } from '../../../store.ts'
import type { Context } from '../context.ts'
import { jobsText, orNull, outcomeFrom, textArray, texts } from '../wire.ts'

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
    const alike = alikeOf(jobs)
    const common: Common = [calls.now(), notifier.listener]
    const first = alike === undefined ? ofAny(jobs, common) : ofAlike(alike, common)
    let isRepeated = false
    const answer = await calls.repeatable(first.call, first.values, () => {
      isRepeated = true
      return first.repeated()
    })
    const outcomes: PushOutcome[] =
      orNull(answer, texts)?.map(outcomeFrom) ?? jobs.map(({ id }) => ({ status: 'pushed', id }))
    // Its own job, which the first of several tries has stored: only the answer was lost.
    if (isRepeated) {
      for (const [at, outcome] of outcomes.entries()) {
        if (outcome.status === 'existing' && outcome.id === jobs[at]?.id) outcome.status = 'pushed'
      }
    }
    const queuesWith = (status: PushOutcome['status']) =>
      new Set(jobs.filter((_, at) => outcomes[at]?.status === status).map(({ queue }) => queue))
    for (const queue of queuesWith('pushed')) notifier.bells.ring('work', queue)
    for (const queue of queuesWith('full')) notifier.noted('room', queue)
    return outcomes
  }

  return async (jobs) => {
    calls.assertOpen()
    if (jobs.length === 0) return []
    notifier.stir()
    // Accepted: a store that closes lets it go first.
    return calls.track(turn.add(jobs.map(copied), 0))
  }
}

/** The time, and who wants to be told of room. */
type Common = [now: number | null, listener: string | null]

interface PushCall {
  call: string
  values: readonly unknown[]
  /** For when the answer was lost: the ids may be known by now. */
  repeated: () => readonly unknown[]
}

/** Jobs that differ in id and data alone. */
interface Alike {
  first: NewJob
  ids: string
  data: string
  /** All are. */
  fresh: boolean
}

function alikeOf(jobs: readonly NewJob[]): Alike | undefined {
  const [first] = jobs
  if (first === undefined) return undefined
  const bodies: string[] = []
  let fresh = true
  for (const job of jobs) {
    const { encoding, body } = job.data
    if (
      job.queue !== first.queue ||
      job.key !== null ||
      encoding !== 'json' ||
      typeof body !== 'string' ||
      job.priority !== first.priority ||
      job.delay !== first.delay ||
      job.runAt !== first.runAt ||
      job.attempts !== first.attempts ||
      job.group !== first.group ||
      job.timeout !== first.timeout ||
      job.trace !== first.trace
    )
      return undefined
    if (job.fresh !== true) fresh = false
    bodies.push(body)
  }
  return { first, ids: `{${jobs.map(({ id }) => id).join(',')}}`, data: textArray(bodies), fresh }
}

function ofAlike({ first, ids, data, fresh }: Alike, common: Common): PushCall {
  const { queue, priority, delay, runAt, group, attempts, timeout, trace } = first
  const given = [queue, ids, data, priority, delay, runAt, group, attempts, timeout, trace, ...common]
  return {
    call: 'push_list($1, $2, $3, $4::smallint, $5, $6, $7, $8, $9, $10, true, $11, $13, $14, $12)',
    values: [...given, fresh, false],
    repeated: () => [...given, false, fresh],
  }
}

function ofAny(jobs: readonly NewJob[], common: Common): PushCall {
  const known = () => jobsText(jobs.map((job) => ({ ...job, fresh: false })))
  return {
    call: 'push_jobs($1, true, $2, $4, $3)',
    values: [jobsText(jobs), ...common, false],
    repeated: () => [known(), ...common, jobs.some(({ fresh }) => fresh === true)],
  }
}

/** What the caller changes after the call must change nothing. */
function copied(job: NewJob): NewJob {
  const { encoding, body } = job.data
  return { ...job, data: { encoding, body: typeof body === 'string' ? body : body.slice() } }
}
