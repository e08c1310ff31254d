/**
 * The forms in which jobs, completions and claims cross between the threads. Cloning is most of what a call costs the event
 * loop, so large batches cross as text.
 */
import { types } from 'node:util'
import type { ClaimedJob, Completion, Encoded, Encoding, NewJob, OfQueue, PushOutcome } from '../../store.ts'
import { areAlike, copyEncoded } from '../jobs.ts'

/** Jobs that differ in id and data alone, as most of a batch do. One statement stores them all. */
export interface JobList {
  count: number
  /** What they have in common. */
  job: NewJob
  /** One after the other. */
  ids: string
  /** JSON: a list of what each job's data is as text. */
  bodies: string
}

/** Of a UUID as text. */
const ID_LENGTH = 36

/** `jobs` of a push, as they cross. */
export interface PackedPush {
  jobs: JobList | readonly NewJob[]
}

export function packJobs(jobs: readonly NewJob[]): JobList | NewJob[] {
  const [job] = jobs
  const isList = jobs.length > 1 && areAlike(jobs) && jobs.every(({ id }) => id.length === ID_LENGTH)
  if (job === undefined || !isList) {
    return jobs.map((each) => ({ ...each, data: copyEncoded(each.data) }))
  }
  return {
    count: jobs.length,
    job: { ...job, data: { encoding: 'json', body: '' } },
    ids: jobs.map(({ id }) => id).join(''),
    bodies: JSON.stringify(jobs.map(({ data }) => data.body)),
  }
}

export function jobsIn({ job, ids, bodies }: JobList): NewJob[] {
  const list: string[] = JSON.parse(bodies)
  return list.map((body, at) => {
    const id = ids.slice(at * ID_LENGTH, (at + 1) * ID_LENGTH)
    return { ...job, id, data: { encoding: 'json', body } }
  })
}

/** A list for each of their parts: to clone an object for each completion is a tenth of a drain. */
export interface PackedCompletions {
  queue: string
  ids: string[]
  fences: number[]
  /** null: none has a result. */
  results: (Encoded | null)[] | null
  /** null: none has lines for its log. */
  logs: (readonly string[] | undefined)[] | null
}

export function packCompletions({ queue, items: completions }: OfQueue<Completion>): PackedCompletions {
  const isSilent = completions.every(({ log }) => log === undefined)
  const isPlain = completions.every(({ result }) => result === null)
  return {
    queue,
    ids: completions.map(({ id }) => id),
    fences: completions.map(({ fence }) => fence),
    results: isPlain ? null : completions.map(({ result }) => copyEncoded(result)),
    logs: isSilent ? null : completions.map(({ log }) => log && [...log]),
  }
}

/** @param outcomes null: all were pushed */
export const pushOutcomes = (jobs: readonly NewJob[], outcomes: PushOutcome[] | null): PushOutcome[] =>
  outcomes ?? jobs.map(({ id }) => ({ status: 'pushed', id }))

/**
 * What is no encoded value, as another program may have stored it, must not spoil answers with other jobs in them: it
 * fails when it is decoded.
 */
export function encodedFrom(encoding: unknown, body: unknown): Encoded {
  const isBody = typeof body === 'string' || types.isUint8Array(body)
  return isEncoding(encoding) && isBody ? { encoding, body } : { encoding: 'json', body: '' }
}

const isEncoding = (value: unknown): value is Encoding => value === 'json' || value === 'msgpack' || value === 'bytes'

/** Jobs of a claim, as `claim/look` tells of them. */
export interface PackedClaims {
  /** JSON: a list for each. */
  jobs: string
  /** The body of each of them. */
  data: unknown[]
}

export function claimedJobs({ jobs, data }: PackedClaims): ClaimedJob[] {
  type Of<Name extends keyof ClaimedJob> = ClaimedJob[Name]
  type Told = [
    ...[Of<'id'>, Of<'fence'>, Of<'attempt'>, Of<'attempts'>, Of<'priority'>, Of<'group'>, Of<'key'>],
    ...[Of<'timeout'>, Of<'trace'>, Of<'pushedAt'>, Of<'dueAt'>, Encoding],
  ]
  const list: Told[] = JSON.parse(jobs)
  return list.map((told, at) => {
    const [id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, encoding] = told
    const job = { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt }
    return { ...job, data: encodedFrom(encoding, data[at]) }
  })
}
