/**
 * The forms in which jobs, completions and claims cross between the threads. Cloning is most of what a call costs the event
 * loop, so large batches cross as text.
 */
import { types } from 'node:util'
import type { OfQueue } from '../../store.ts'
import type {
  ClaimedJob,
  Completion,
  Encoded,
  Encoding,
  JournalItem,
  NewEntry,
  NewJob,
  PushOutcome,
} from '../../values/jobs/records.ts'
import { areAlike, areAlikeButParents, copyEncoded } from '../jobs.ts'

/** The links of a list of jobs. A link is a number: the index of its parent × `LINK_BASE` + that of its child. */
export interface ListLinks {
  /** JSON: those between jobs of the list. */
  inside: string
  /** For each job, 1: it has a parent in the list. */
  waits: Uint8Array
  /** Ids of parents that are not in the list, and their links, by their indexes here. */
  others: string[]
  outside: number[]
}

/** Above the index of any job of a list. */
export const LINK_BASE = 2 ** 17

/** Jobs that differ in id and data, and perhaps in their parents, as most of a batch do. A statement or two store them all. */
export interface JobList {
  count: number
  /** What they have in common. */
  job: NewJob
  /** One after the other. */
  ids: string
  /** JSON: a list of what each job's data is as text. */
  bodies: string
  /** undefined: none has parents. */
  links: ListLinks | undefined
}

/** Of a UUID as text. */
const ID_LENGTH = 36

/** `jobs` of a push, as they cross. */
export interface PackedPush {
  jobs: JobList | readonly NewJob[]
  whole?: boolean
}

export function packJobs(jobs: readonly NewJob[]): JobList | NewJob[] {
  const [job] = jobs
  const isPlain = areAlike(jobs)
  const isList =
    jobs.length > 1 && (isPlain || areAlikeButParents(jobs)) && jobs.every(({ id }) => id.length === ID_LENGTH)
  const links = isList && !isPlain ? linksBetween(jobs) : undefined
  if (job === undefined || !isList || links === null) {
    return jobs.map((each) => ({
      ...each,
      data: copyEncoded(each.data),
      ...(each.after !== undefined && { after: [...each.after] }),
    }))
  }
  const { after: _, ...common } = job
  return {
    count: jobs.length,
    job: { ...common, data: { encoding: 'json', body: '' } },
    ids: jobs.map(({ id }) => id).join(''),
    bodies: JSON.stringify(jobs.map(({ data }) => data.body)),
    links,
  }
}

/** Most lists are short, and without repeats. */
const distinct = (ids: readonly string[] = []): Iterable<string> =>
  ids.length < 2 || (ids.length === 2 && ids[0] !== ids[1]) ? ids : new Set(ids)

/** null: there are too many jobs. What waits for a later one of them waits for one that is not there. */
function linksBetween(jobs: readonly NewJob[]): ListLinks | null {
  if (jobs.length > LINK_BASE) return null
  const indexes = new Map<string, number>()
  const others = new Map<string, number>()
  const inside: number[] = []
  const outside: number[] = []
  const waits = new Uint8Array(jobs.length)
  let child = 0
  for (const { id: own, after } of jobs) {
    for (const id of distinct(after)) {
      const parent = indexes.get(id)
      if (parent === undefined) {
        const other = others.get(id) ?? others.size
        others.set(id, other)
        outside.push(other * LINK_BASE + child)
      } else {
        inside.push(parent * LINK_BASE + child)
        waits[child] = 1
      }
    }
    indexes.set(own, child++)
  }
  return { inside: JSON.stringify(inside), waits, others: [...others.keys()], outside }
}

export function jobsIn({ job, ids, bodies, links }: JobList): NewJob[] {
  const list: string[] = JSON.parse(bodies)
  const idAt = (at: number): string => ids.slice(at * ID_LENGTH, (at + 1) * ID_LENGTH)
  const parents = links === undefined ? [] : parentsIn(links, idAt)
  return list.map((body, at) => {
    const after = parents[at]
    return { ...job, id: idAt(at), data: { encoding: 'json', body }, ...(after !== undefined && { after }) }
  })
}

/** Of the jobs that have some, by their indexes. */
function parentsIn({ inside, others, outside }: ListLinks, idAt: (at: number) => string): string[][] {
  const parents: string[][] = []
  const add = (link: number, id: string | undefined): void => {
    const child = link % LINK_BASE
    if (id !== undefined) parents[child] = [...(parents[child] ?? []), id]
  }
  const own: number[] = JSON.parse(inside)
  for (const link of own) add(link, idAt(Math.floor(link / LINK_BASE)))
  for (const link of outside) add(link, others[Math.floor(link / LINK_BASE)])
  return parents
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
    ...[Of<'timeout'>, Of<'trace'>, Of<'pushedAt'>, Of<'dueAt'>, Encoding, number | null],
  ]
  const list: Told[] = JSON.parse(jobs)
  return list.map((told, at) => {
    const [id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, encoding, journal] =
      told
    const job = { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt }
    return { ...job, data: encodedFrom(encoding, data[at]), ...(journal !== null && { journal }) }
  })
}

export const copyJournal = ({ queue, items }: OfQueue<JournalItem>): OfQueue<JournalItem> => ({
  queue,
  items: items.map(({ id, fence, log, entries }) => ({ id, fence, log, entries: copyEntries(entries) })),
})

/** Entries of the caller's, which may have more beside what the contract names. */
export const copyEntries = (entries: readonly NewEntry[]): NewEntry[] =>
  entries.map(({ name, meta, body }) => ({ name, meta, body: copyEncoded(body) }))
