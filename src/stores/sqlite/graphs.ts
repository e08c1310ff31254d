/** Jobs that are stored with parents: contract/sqlite/graphs.sql. */
import type { JobState, NewJob, OnDead } from '../../values/jobs/records.ts'
import { integer, stateFrom, text } from './connection/values.ts'
import type { Queue, StoreContext } from './queues.ts'
import { cancelChildren, type Endings } from './settle.ts'
import { LINK_BASE, type ListLinks } from './wire.ts'

/** What is open of a link. */
export const openOf = (onDead: OnDead = 'cancel'): 1 | 2 => (onDead === 'run' ? 2 : 1)

interface Parent {
  seq: number
  queue: string
  state: JobState
}

/** By their ids: those that are there. */
export function parentsOf({ statements }: StoreContext, ids: readonly string[]): Map<string, Parent> {
  if (ids.length === 0) return new Map()
  const rows = statements.all('graphs/parents', { ids: JSON.stringify(ids) })
  return new Map(
    rows.map((row) => {
      const parent = { seq: integer(row.seq), queue: text(row.queue), state: stateFrom(row.state) }
      return [text(row.id), parent]
    }),
  )
}

const isFinal = (state: JobState): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

/** How a job stands to those that it is to wait for. */
export interface Standing {
  /** Of each parent: its place, and what is open of the link. */
  links: [seq: number, open: number][]
  queues: Set<string>
  /** The place of the job that it is part of. */
  partOf: number | null
  isBlocked: boolean
  /** A parent because of which it is cancelled at once. */
  failed: { id: string; end: 'dead' | 'cancelled' } | null
}

interface Unusual {
  /** Ids of jobs that stand for others: those were not stored for them. */
  stands?: ReadonlyMap<string, string>
  /** Gives what stands for the place of a parent that is not there; unless set, that makes the job an orphan. */
  unknown?(id: string): number
}

/** @returns the id of a parent that makes it an orphan */
export function standingOf(
  context: StoreContext,
  { after = [], onDead = 'cancel', partOf = null }: Pick<NewJob, 'after' | 'onDead'> & { partOf?: string | null },
  { stands, unknown }: Unusual,
): Standing | string {
  const own = (id: string): string => stands?.get(id) ?? id
  const known = parentsOf(context, [...after, ...(partOf === null ? [] : [partOf])].map(own))
  const standing: Standing = { links: [], queues: new Set(), partOf: null, isBlocked: false, failed: null }
  const links = new Map<number, number>()
  for (const id of after) {
    const parent = known.get(own(id))
    if (parent === undefined && unknown === undefined) return id
    const { queue, state } = parent ?? {}
    if (queue !== undefined) standing.queues.add(queue)
    const hasEnded = state !== undefined && isFinal(state)
    links.set(parent?.seq ?? unknown?.(id) ?? 0, hasEnded ? -openOf(onDead) : openOf(onDead))
    if (!hasEnded) standing.isBlocked = true
    else if (state !== 'done' && onDead === 'cancel') {
      standing.failed ??= { id: own(id), end: state === 'dead' ? 'dead' : 'cancelled' }
    }
  }
  standing.links = [...links]
  const whole = partOf === null ? undefined : known.get(own(partOf))
  if (partOf !== null && (whole === undefined || isFinal(whole.state))) return partOf
  standing.partOf = whole?.seq ?? null
  // Until it is cancelled.
  if (standing.failed !== null) standing.isBlocked = true
  return standing
}

/** The job that was stored last gets its links. */
export function link(
  context: StoreContext,
  queue: Queue,
  { links, queues, partOf, failed }: Standing,
  endings: Endings,
): void {
  const { statements } = context
  for (const name of [queue.name, ...queues]) markGraphs(context, name)
  const seq = lastSeq(context)
  if (links.length > 0) {
    statements.run('graphs/link', { links: JSON.stringify(links.map(([parent, open]) => [parent, seq, open])) })
  }
  if (partOf !== null) statements.run('graphs/part_of', { seq, part_of: partOf })
  if (failed !== null) endings.add(cancelChildren(context, failed, [seq]))
}

/** A claimed job waits until these have ended. @param seq its place @returns whether any of them has not */
export function waitAgain(context: StoreContext, queue: Queue, seq: number, after: readonly string[]): boolean {
  const live = [...parentsOf(context, after).values()].filter((parent) => parent.seq !== seq && !isFinal(parent.state))
  if (live.length === 0) return false
  for (const name of [queue.name, ...live.map((parent) => parent.queue)]) markGraphs(context, name)
  const { statements } = context
  statements.run('graphs/link', { links: JSON.stringify(live.map((parent) => [parent.seq, seq, openOf('run')])) })
  return true
}

export const lastSeq = ({ statements }: StoreContext): number => integer(statements.get('graphs/last')?.seq)

export function markGraphs({ statements, queues }: StoreContext, name: string): void {
  const { settings } = queues.findOrCreate(name)
  if (settings.usesGraphs) return
  statements.run('graphs/mark', { queue: name })
  settings.usesGraphs = true
}

/** A list of jobs, the first at `first`, whose links are all open or closed; undefined: they have to be looked at one by one. */
export function listStanding(
  context: StoreContext,
  { others, outside, waits }: ListLinks,
  { onDead }: Pick<NewJob, 'onDead'>,
): { waits: Uint8Array; queues: Set<string>; links: (first: number) => string } | undefined {
  const known = parentsOf(context, others)
  const parents = others.map((id) => known.get(id))
  const queues = new Set<string>()
  const links: [parent: number, child: number, open: number][] = []
  for (const each of outside) {
    const parent = parents[Math.floor(each / LINK_BASE)]
    const child = each % LINK_BASE
    if (parent === undefined) return undefined
    const hasEnded = isFinal(parent.state)
    if (hasEnded && parent.state !== 'done' && onDead !== 'run') return undefined
    if (!hasEnded) waits[child] = 1
    queues.add(parent.queue)
    links.push([parent.seq, child, hasEnded ? -openOf(onDead) : openOf(onDead)])
  }
  return {
    ...{ waits, queues },
    links: (first) => JSON.stringify(links.map(([parent, child, open]) => [parent, first + child, open])),
  }
}

/** Whether jobs are awaited: then each that comes is looked up. */
export const awaitsAny = ({ statements }: StoreContext, queue: Queue): boolean =>
  queue.settings.usesGraphs && statements.get('graphs/awaits') !== undefined

/** The job that was stored last may be one that is awaited. */
export function come(context: StoreContext, queue: Queue, id: string): void {
  if (!queue.settings.usesGraphs) return
  const { statements } = context
  const awaited = statements.get('graphs/awaited', { id })
  if (awaited === undefined) return
  const node = integer(awaited.node)
  statements.run('graphs/come', { node, seq: lastSeq(context) })
  statements.run('graphs/unawaited', { node })
}

/** The number that stands for a job which is not there. */
export function awaitJob({ statements, queues }: StoreContext, id: string): number {
  statements.run('graphs/await', { id })
  queues.write()
  statements.run('graphs/await_all')
  return integer(statements.get('graphs/awaited', { id })?.node)
}

/** Jobs have come back, all of a call: they wait for those of their parents that live. */
export function blockAgain({ statements, queues }: StoreContext, seqs: readonly number[]): void {
  if (seqs.length === 0) return
  const children = JSON.stringify(seqs)
  if (statements.run('graphs/reopen', { children }) === 0) return
  for (const { queue } of statements.all('graphs/block_again', { children })) {
    queues.findOrCreate(text(queue)).move('waiting', 'blocked')
  }
}
