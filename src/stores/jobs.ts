/** What stores do with jobs that are handed in. */
import type { Encoded, NewJob, PushOutcome } from '../values/jobs/records.ts'

/** Whether it waits for other jobs. */
export const waits = ({ after }: NewJob): boolean => after !== undefined && after.length > 0

/** Whether its push says something of other jobs: contract/graphs.md. */
export const hasParents = (job: NewJob): boolean => waits(job) || (job.partOf !== undefined && job.partOf !== null)

/**
 * Whether they differ in id and data alone, have no keys and no parents, and their data is JSON, as in most batches. One
 * statement can store them all.
 */
export function areAlike(jobs: readonly NewJob[]): boolean {
  const [first] = jobs
  return first !== undefined && jobs.every((job) => isAlike(job, first) && !hasParents(job))
}

/** The same where each may wait for other jobs. */
export function areAlikeButParents(jobs: readonly NewJob[]): boolean {
  const [first] = jobs
  return first !== undefined && jobs.every((job) => isAlike(job, first) && isAlikeInGraph(job, first))
}

const isAlikeInGraph = ({ partOf, onDead = 'cancel' }: NewJob, first: NewJob): boolean =>
  (partOf ?? null) === null && onDead === (first.onDead ?? 'cancel')

/** Name by name: a list of the names would take ten times as long, for each job that is pushed. */
export function isAlike(job: NewJob, first: NewJob): boolean {
  return (
    job.data.encoding === 'json' &&
    typeof job.data.body === 'string' &&
    job.key === null &&
    job.queue === first.queue &&
    job.priority === first.priority &&
    job.delay === first.delay &&
    job.runAt === first.runAt &&
    job.attempts === first.attempts &&
    job.timeout === first.timeout &&
    job.group === first.group &&
    job.trace === first.trace &&
    (job.cost ?? 1) === (first.cost ?? 1)
  )
}

/** Whether the outcome is that of a job which cannot be stored. Of a push of all or none, no job is stored then. */
export const isRefused = ({ status }: PushOutcome): boolean =>
  status === 'full' || status === 'orphan' || status === 'held'

/** Whether a job stands for this one from now on: later jobs of the call that are to wait for this one wait for that one. */
export const standsFor = ({ status, id }: PushOutcome, job: NewJob): boolean => status !== 'held' && id !== job.id

/** Bytes of its own: the caller may change those that it gave. Text cannot change. */
export const copyBody = (body: string | Uint8Array): string | Uint8Array =>
  typeof body === 'string' ? body : new Uint8Array(body)

export const copyEncoded = <E extends Encoded | null>(encoded: E): E | Encoded =>
  encoded === null ? encoded : { encoding: encoded.encoding, body: copyBody(encoded.body) }
