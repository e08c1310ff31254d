import type { Input } from '../../../store.ts'
import type {
  EntriesPage,
  JournalOutcome,
  Park,
  ReleaseOutcome,
  SignalItem,
  SignalOutcome,
} from '../../../values/jobs/records.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import { isFinal, type Job, ORIGIN } from '../job.ts'
import { Journal, pagesOf } from '../journal.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function journal(state: MemoryState, { queue, items }: Input<'journal'>): JournalOutcome[] {
  return items.map((item) => {
    const job = state.held(queue, item)
    if (job === undefined) return 'stale'
    if (item.log) job.addLog(item.log)
    return add(job, item.entries) ? 'ok' : 'full'
  })
}

export function entries(state: MemoryState, { items }: Input<'entries'>): (EntriesPage | null)[] {
  return pagesOf(
    items.map(({ id, after }) => {
      const job = state.jobs.get(id)
      return job === undefined ? null : { journal: job.journal, after }
    }),
  )
}

export function signal(state: MemoryState, { items }: Input<'signal'>): SignalOutcome[] {
  return items.map((item) => {
    const job = 'id' in item ? state.jobs.get(item.id) : state.queues.get(item.queue)?.keys.get(item.key)
    if (job === undefined) return { status: 'none', id: 'id' in item ? item.id : null }
    return { status: signalOne(state, job, item), id: job.id }
  })
}

function signalOne(state: MemoryState, job: Job, entry: SignalItem): SignalOutcome['status'] {
  if (isFinal(job.state)) return 'ended'
  if (!add(job, [entry])) return 'full'
  if (job.state !== 'scheduled' || job.parked === null) return 'ok'
  job.dueAt = state.now()
  state.queues.get(job.queue)?.wait(job)
  state.bells.ring('work', job.queue)
  return 'ok'
}

/** The claim is over, and the job waits for what `park` says. */
export function park(state: MemoryState, queue: MemoryQueue, job: Job, park: Park): ReleaseOutcome {
  if (!add(job, park.entries)) return 'full'
  const now = state.now()
  job.worker = null
  job.attempt--
  job.parked = park.reason
  job.dueAt = now
  if (state.graph.waitAgain(job, park.after)) {
    queue.block(job)
    // Another job may have its slot.
    if (queue.hasLimits) state.bells.ring('work', queue.name)
    return 'ok'
  }
  const until = park.until === null ? now + DEFAULTS.bounds.delay.most : park.until - ORIGIN
  const isOver = park.after.length > 0 || until <= now || (job.journal?.signals ?? 0) > park.signals
  if (!isOver) {
    job.dueAt = until
    queue.schedule(job)
  } else queue.wait(job)
  state.bells.ring('work', queue.name)
  return 'ok'
}

/** @returns false: the journal would outgrow a bound */
function add(job: Job, given: Parameters<Journal['add']>[0]): boolean {
  if (given.length === 0) return true
  const own = job.journal ?? new Journal()
  if (!own.add(given)) return false
  job.journal = own
  return true
}
