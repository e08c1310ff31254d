/** Where a push goes: to memory, or to the durable store. `spilled-queue.ts` has the rule of the order. */
import type { Input, NewJob, Output, PushOutcome } from '../../store.ts'
import { MillpondError, storeError } from '../../values/errors.ts'
import { Groups } from '../memory/groups.ts'
import type { MemoryQueue } from '../memory/queue.ts'
import type { Spill } from './spill.ts'
import type { SpilledQueue } from './spilled-queue.ts'

type Next = (input: Input<'push'>) => Promise<Output<'push'>>

export async function push(spill: Spill, { jobs }: Input<'push'>, next: Next): Promise<PushOutcome[]> {
  // A queue of which nothing was spilled goes the plain way; its jobs that find no room are looked at afterwards.
  const isPlain = spill.queues.size === 0 || !jobs.some(({ queue }) => spill.queues.has(queue))
  const outcomes: (PushOutcome | undefined)[] = isPlain ? await next({ jobs }) : new Array(jobs.length)
  const toRoute = jobs.flatMap((job, index) => (isToRoute(job, outcomes[index]) ? [index] : []))
  if (toRoute.length === 0) return outcomes.flatMap((outcome) => outcome ?? [])
  for (const index of toRoute) outcomes[index] = undefined
  const isKnown = isPlain ? () => undefined : await knownIn(spill, jobs)
  const memory: number[] = []
  const durable: number[] = []
  for (const index of toRoute) {
    const job = jobs[index]
    if (job === undefined) continue
    const queue = spill.queues.get(job.queue)
    const existing = isKnown(job) ?? existingIn(spill, job, queue)
    if (existing !== undefined) outcomes[index] = { status: 'existing', id: existing }
    else if (!isPlain && goesToMemory(spill, job, queue)) memory.push(index)
    else if (job.spill || !isFull(spill, job.queue)) durable.push(index)
    else outcomes[index] = { status: 'full', id: job.id }
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

const isToRoute = (job: NewJob, outcome: PushOutcome | undefined): boolean =>
  outcome === undefined || (outcome.status === 'full' && job.spill === true)

/** The durable store has it under this id, perhaps as one that is finished. An id that was made for this push is not looked for. */
async function knownIn(spill: Spill, jobs: readonly NewJob[]): Promise<(job: NewJob) => string | undefined> {
  const ids = jobs.filter(({ fresh, queue }) => fresh !== true && spill.queues.has(queue)).map(({ id }) => id)
  if (ids.length === 0) return () => undefined
  const found = await spill.stores.durable.operations.find({ ids })
  const known = new Set(found.flatMap((record) => record?.id ?? []))
  return ({ id }) => (known.has(id) ? id : undefined)
}

/** A job in memory, or on its way there, that has the id or the key. */
function existingIn(
  { stores }: Spill,
  { id, fresh, key, queue: name }: NewJob,
  queue?: SpilledQueue,
): string | undefined {
  if (fresh !== true && (stores.state.jobs.get(id) !== undefined || queue?.coming.has(id))) return id
  if (key === null) return undefined
  const live = stores.state.queues.get(name)?.keys.get(key)
  return live?.id ?? [...(queue?.coming.values() ?? [])].find((record) => record.key === key)?.id
}

function goesToMemory(spill: Spill, { priority, key, queue: name }: NewJob, queue?: SpilledQueue): boolean {
  if (queue === undefined) return true
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
  for (const [name, own] of byQueue) {
    const given = own.flatMap((index) => jobs[index] ?? [])
    try {
      const answers = await spillJobs(spill, name, given)
      for (const [at, index] of own.entries()) outcomes[index] = answers[at]
    } catch (error) {
      failure = storeError(error, 'a push to the spill store')
      for (const index of own) {
        const { id } = jobs[index] as NewJob
        outcomes[index] = { status: 'failed', id, error: failure }
      }
    }
  }
  if (failure !== undefined && outcomes.every((outcome) => outcome?.status === 'failed')) throw failure
}

async function spillJobs(spill: Spill, name: string, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  const { state, durable, exclusion } = spill.stores
  const own = state.findOrCreate(name)
  if (own.waiting instanceof Groups) {
    const message = `queue ${name} has groups that take turns, which goes over all its jobs at once: it cannot spill`
    throw new MillpondError('NotSupported', message, { queue: name })
  }
  const queue = spill.queue(name)
  const given = jobs.map((job) => withSettings(job, own))
  const isKeyed = jobs.some(({ key }) => key !== null)
  const ended = queue.pushing(new Set(jobs.map(({ priority }) => priority)))
  queue.scheduled ||= jobs.some(({ delay, runAt }) => delay > 0 || runAt !== null)
  const call = () => durable.operations.push({ jobs: given })
  try {
    await spill.tell(queue)
    // While a keyed push is under way, no job with its key may leave the durable store.
    const outcomes = await (isKeyed ? exclusion.change(() => pushKeyed(spill, queue, given, call)) : call())
    state.bells.ring('work', name)
    return outcomes
  } finally {
    ended()
  }
}

/** A take may have brought a job with one of the keys to memory while this push waited for it. */
async function pushKeyed(
  spill: Spill,
  queue: SpilledQueue,
  jobs: readonly NewJob[],
  call: () => Promise<PushOutcome[]>,
): Promise<PushOutcome[]> {
  const existing = jobs.map((job) => existingIn(spill, job, queue))
  if (existing.every((id) => id === undefined)) return call()
  const left = jobs.filter((_, index) => existing[index] === undefined)
  const answers = left.length === 0 ? [] : await spill.stores.durable.operations.push({ jobs: left })
  let at = 0
  return existing.flatMap((id): PushOutcome | [] =>
    id !== undefined ? { status: 'existing', id } : (answers[at++] ?? []),
  )
}

/** The durable store does not know the queue's settings. */
function withSettings({ spill: _, ...job }: NewJob, { settings }: MemoryQueue): NewJob {
  return { ...job, attempts: job.attempts ?? settings.attempts, timeout: job.timeout ?? settings.timeout }
}
