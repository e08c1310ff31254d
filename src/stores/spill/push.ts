/** Where a push goes: to memory, or to the durable store. `spilled-queue.ts` has the rule of the order. */
import type { Input, Output } from '../../store.ts'
import { type MillpondError, storeError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { lacking } from '../../values/operations/capabilities.ts'
import { hasParents } from '../lacking.ts'
import type { MemoryQueue } from '../memory/queue.ts'
import type { Spill } from './spill.ts'
import { NONE } from './spilled-queue.ts'

export const NAMED = { name: 'memory with spill' }

type Next = (input: Input<'push'>) => Promise<Output<'push'>>

export async function push(spill: Spill, { jobs, whole = false }: Input<'push'>, next: Next): Promise<PushOutcome[]> {
  // The key may be in either store.
  if (jobs.some(({ once }) => once)) throw lacking(NAMED, 'once', 'a key that does more')
  // So may a parent be.
  if (whole || jobs.some(hasParents)) throw lacking(NAMED, 'graphs', 'a job that waits for others')
  const hasSpilled = spill.queues.size > 0 && jobs.some(({ queue }) => spill.queues.has(queue))
  if (hasSpilled) return routed(spill, jobs, next)
  // A queue of which nothing was spilled goes the plain way. Only its jobs that find no room are routed.
  const outcomes = await next({ jobs })
  const isOver = (index: number) => outcomes[index]?.status === 'full' && jobs[index]?.spill === true
  const over = jobs.filter((_, index) => isOver(index))
  if (over.length === 0) return outcomes
  const answers = (await routed(spill, over, next)).values()
  return outcomes.map((outcome, index) => (isOver(index) ? (answers.next().value ?? outcome) : outcome))
}

/**
 * A job that may be known already, by its id or key, excludes takes: then it is known in one of the stores. No job with its key
 * may leave the durable store while a push looks for it there.
 */
function routed(spill: Spill, jobs: readonly NewJob[], next: Next): Promise<PushOutcome[]> {
  const mayBeKnown = jobs.some(({ fresh, key }) => fresh !== true || key !== null)
  const call = () => route(spill, jobs, next)
  return mayBeKnown ? spill.stores.exclusion.change(call) : call()
}

async function route(spill: Spill, jobs: readonly NewJob[], next: Next): Promise<PushOutcome[]> {
  const isKnown = await knownIn(spill, jobs)
  const outcomes: (PushOutcome | undefined)[] = new Array(jobs.length)
  const memory: number[] = []
  const durable: number[] = []
  /** By queue, the highest priority of those that go to the durable store now: what comes after them in the call stays behind them. */
  const spilled = new Map<string, number>()
  for (const [index, job] of jobs.entries()) {
    const { queue, priority } = job
    const highest = spilled.get(queue) ?? NONE
    if (isKnown(job)) outcomes[index] = { status: 'existing', id: job.id }
    else if (priority > highest && goesToMemory(spill, job)) memory.push(index)
    else if (job.spill || !isFull(spill, queue)) {
      durable.push(index)
      spilled.set(queue, Math.max(highest, priority))
    } else outcomes[index] = { status: 'full', id: job.id }
  }
  if (memory.length > 0) {
    const answers = await next({ jobs: memory.flatMap((index) => jobs[index] ?? []) })
    for (const [at, index] of memory.entries()) {
      const isOver = answers[at]?.status === 'full' && jobs[index]?.spill === true
      if (isOver) durable.push(index)
      else outcomes[index] = answers[at]
    }
    durable.sort((a, b) => a - b)
  }
  await spillOver(spill, jobs, durable, outcomes)
  return outcomes.flatMap((outcome) => outcome ?? [])
}

/** The durable store has it under this id, perhaps as one that is finished. An id that was made for this push is not looked for. */
async function knownIn(spill: Spill, jobs: readonly NewJob[]): Promise<(job: NewJob) => boolean> {
  const ids = jobs.filter(({ fresh, queue }) => fresh !== true && spill.queues.has(queue)).map(({ id }) => id)
  if (ids.length === 0) return () => false
  const found = await spill.stores.durable.operations.find({ ids })
  const known = new Set(found.flatMap((record) => record?.id ?? []))
  return ({ id }) => known.has(id)
}

/** A job in memory that has the id or the key. */
function existingIn({ stores }: Spill, job: NewJob | undefined): string | undefined {
  if (job === undefined) return undefined
  const { id, fresh, key, queue } = job
  if (fresh !== true && stores.state.jobs.get(id) !== undefined) return id
  return key === null ? undefined : stores.state.queues.get(queue)?.keys.get(key)?.id
}

function goesToMemory(spill: Spill, { priority, key, queue: name }: NewJob): boolean {
  const queue = spill.queues.get(name)
  if (queue === undefined) return !isFull(spill, name)
  if (queue.front || priority <= queue.highest || isFull(spill, name)) return false
  // Only the durable store can tell whether a live job there has the key.
  return key === null || !queue.mayHaveLive
}

const isFull = ({ stores }: Spill, name: string): boolean => stores.state.queues.get(name)?.isFull ?? false

async function spillOver(
  spill: Spill,
  jobs: readonly NewJob[],
  indexes: readonly number[],
  outcomes: (PushOutcome | undefined)[],
): Promise<void> {
  if (indexes.length === 0) return
  const byQueue = Map.groupBy(indexes, (index) => jobs[index]?.queue ?? '')
  let failure: MillpondError | undefined
  for (const [name, all] of byQueue) {
    // No call may come between this look at memory and the call to the durable store.
    const own = all.filter((index) => {
      const existing = existingIn(spill, jobs[index])
      if (existing !== undefined) outcomes[index] = { status: 'existing', id: existing }
      return existing === undefined
    })
    if (own.length === 0) continue
    const given = own.flatMap((index) => jobs[index] ?? [])
    try {
      const answers = await spillJobs(spill, name, given)
      for (const [at, index] of own.entries()) outcomes[index] = answers[at]
    } catch (error) {
      failure = storeError(error, 'a push to the spill store')
      for (const [at, index] of own.entries())
        outcomes[index] = { status: 'failed', id: given[at]?.id ?? '', error: failure }
    }
  }
  if (failure !== undefined && outcomes.every((outcome) => outcome?.status === 'failed')) throw failure
}

async function spillJobs(spill: Spill, name: string, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  const { state, durable } = spill.stores
  const own = state.findOrCreate(name)
  const queue = spill.queue(name)
  const ended = queue.pushing(new Set(jobs.map(({ priority }) => priority)))
  queue.scheduled ||= jobs.some(({ delay, runAt }) => delay > 0 || runAt !== null)
  try {
    await spill.tell(queue)
    const outcomes = await durable.operations.push({ jobs: jobs.map((job) => withSettings(job, own)) })
    state.bells.ring('work', name)
    return outcomes
  } finally {
    ended()
  }
}

/** The durable store does not know the queue's settings. */
function withSettings({ spill: _, ...job }: NewJob, { settings }: MemoryQueue): NewJob {
  return { ...job, attempts: job.attempts ?? settings.attempts, timeout: job.timeout ?? settings.timeout }
}
