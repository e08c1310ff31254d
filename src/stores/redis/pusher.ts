/** Stores new jobs, each in its queue's partition, all in one round trip. */

import { MillpondError } from '../../values/errors/errors.ts'
import { storedUnique } from '../../values/jobs/once.ts'
import type { NewJob, Once, PushOutcome } from '../../values/jobs/records.ts'
import { SOON } from '../bells.ts'
import { callScript } from './connection/script-call.ts'
import type { StoreContext } from './context.ts'
import { finishHeld } from './links.ts'
import { confirmListed, restoreSettings } from './operations/configure.ts'
import { indexOf, type Partition, type Routed } from './partition.ts'
import { askEach } from './per-partition.ts'
import { bytesIn, encodedBytes, ID_BYTES, idsBytes, idText, inOnePiece } from './wire.ts'

export const homeOf = (partitions: readonly Partition[], job: Routed): Partition | undefined =>
  partitions[indexOf(partitions.length, job)]

/** The partition of the job; of a queue that is not known yet, the queue. */
export const partOfJob = ({ queues }: StoreContext, job: NewJob): string =>
  homeOf(queues.known(job.queue) ?? [], job)?.part ?? job.queue

/** Firings that take place, in ms of the server's time. */
export interface Decision {
  now: number
  /** When the oldest firing was decided that is not forgotten yet. */
  since: number
}

/** `fire` stores the jobs of schedules, each once, and even where there is no room. */
type Script = { name: 'push' } | ({ name: 'fire' } & Decision) | { name: 'stage'; graph: Graph }

/** Jobs that wait until it is decided about all of them. */
export interface Graph {
  id: Buffer
  /** The partition that decides. */
  home: Partition
  /** All of it is in one partition and one call, which decides. */
  alone: boolean
  whole: boolean
  /** How many partitions its queues have, as its links know them. */
  readonly counts: Map<string, number>
  /** Of a job, for stage.lua. */
  linksOf(job: NewJob): Links
  /** Where jobs of it were sent. */
  readonly partitions: Set<Partition>
  /** A job met one of a graph that was not decided. It is by now. */
  isHeld: boolean
}

export interface Links {
  /** Its value in `parents`. */
  parents: Buffer
  /** That in `children`, or nothing. */
  children: Buffer
  /** How many of its parents, the first ones, are in its partition, but not in the call. */
  known: number
  /** The job that it is part of, if that has ended or is unknown; else nothing. */
  ended: Buffer
}

export async function pushBy(context: StoreContext, jobs: readonly NewJob[], script: Script): Promise<PushOutcome[]> {
  const answers = await askEach(
    jobs,
    ({ queue }) => queue,
    (queue, own) => pushToQueue(context, script, queue, own),
  )
  return answers.map((answer, at): PushOutcome => {
    if (answer !== undefined && !(answer instanceof MillpondError)) return answer
    const error = answer ?? new MillpondError('StoreFailed', 'push: Redis gave no answer for a job')
    return { status: 'failed', id: jobs[at]?.id ?? '', error }
  })
}

/**
 *   known, registered ──push──► stored
 *        ▲          └──► refused: the partition is not listed ──registered again, push with the floor──► stored ──► confirmed, listed
 *     not known
 *
 * @param floor of a queue that was just registered
 */
export async function pushToQueue(
  context: StoreContext,
  script: Script,
  queue: string,
  jobs: readonly NewJob[],
  floor: number | null = null,
): Promise<(PushOutcome | MillpondError)[]> {
  const { queues } = context
  const known = queues.known(queue)
  const { partitions, floor: given } = known ? { partitions: known, floor } : await queues.create(queue)
  const answers = await askEach<Partition, NewJob, PushOutcome | MillpondError>(
    jobs,
    (job) => (isPlaceable(partitions, job) ? homeOf(partitions, job) : undefined),
    async (partition, own) =>
      (await pushTo(context, script, partition, own, given)) ??
      (await pushToQueue(context, script, queue, own, (await queues.create(queue)).floor)),
  )
  return answers.map((answer, at) => answer ?? notPlaceable(queue, jobs[at]?.id))
}

/** A group's jobs lie in one partition, and a key's in one: of several partitions, these may be two. */
export const isPlaceable = (partitions: readonly Partition[], { key, group }: Routed): boolean =>
  partitions.length === 1 || key === null || group === null

export function notPlaceable(queue: string, id: string | undefined): MillpondError {
  const message = `a job of the queue ${queue} cannot have a key and a group: the queue is split into partitions`
  return new MillpondError('NotSupported', message, { queue, ...(id !== undefined && { id }) })
}

/** @returns null where nothing was stored, since the partition is not listed */
async function pushTo(
  context: StoreContext,
  script: Script,
  partition: Partition,
  jobs: readonly NewJob[],
  floor: number | null,
): Promise<PushOutcome[] | null> {
  const { queue } = partition
  const { notifier, locations } = context
  const staged = script.name === 'stage' ? stagedArgs(script.graph, partition, jobs) : undefined
  if (staged !== undefined) jobs = jobs.slice(0, staged.count)
  const { values, which } = distinctValues(jobs)
  const ids = idsBytes(jobs)
  const { sizes, bytes } = inOnePiece(jobs.map(({ data }) => encodedBytes(data)))
  const name = script.name === 'push' && values.some(hasOnce) ? 'push-once' : script.name
  const [listed, ...answers] = await callScript(context, name, partition, {
    head: [floor, values, which, sizes, partition.count, ...(staged?.head ?? []), ...decisionOf(script)],
    items: [ids, bytes, ...(staged?.items ?? [])],
    safe: true,
  })
  if (listed === TOO_LATE) throw new MillpondError('StoreUnavailable', `a firing for ${queue} was sent too late`)
  if (listed !== 1) restoreSettings(context, queue)
  if (listed === undefined) return null
  if (jobs.some(({ delay, runAt }) => runAt !== null || delay < SOON)) notifier.local.ring('work', queue)
  if (listed !== 1) await confirmListed(context, partition)
  const outcomes = jobs.map(({ id }, at) => outcomeOf(answers.length === 0 ? PUSHED : answers[at], id))
  await pushHeld(context, script, partition, jobs, { answers, outcomes, floor })
  locations.remember(partition, answers.length === 0 ? ids : idsBytes(outcomes))
  return outcomes
}

/**
 * Jobs that are pushed together mostly differ in nothing but their data. `which`: of each job, where its values stand, from 1; null: all in
 * the first.
 */
function distinctValues(jobs: readonly NewJob[]): { values: unknown[][]; which: number[] | null } {
  const values: unknown[][] = []
  const plain: number[] = []
  const which = jobs.map(({ priority, delay, runAt, attempts, timeout, group, key, trace, cost = 1, once }) => {
    const timed = delay !== 0 || runAt !== null || attempts !== null || timeout !== null
    const isPlain = !timed && group === null && key === null && trace === null && cost === 1
    const known = isPlain ? plain[priority] : undefined
    if (known !== undefined) return known
    const value = [priority, delay, runAt, attempts, timeout, group, key, trace]
    const more = once === undefined || key === null ? [cost] : [cost === 1 ? null : cost, packedOnce(once)]
    const at = values.push(more[0] === 1 ? value : [...value, ...more])
    if (isPlain) plain[priority] = at
    return at
  })
  return { values, which: values.length === 1 ? null : which }
}

const ONCE_AT = 9
const hasOnce = (value: unknown[]): boolean => value[ONCE_AT] !== undefined

/** As push-once.lua takes it. */
const packedOnce = ({ unique, replace, maxWait, follow }: Once) => [
  storedUnique(unique),
  replace === true ? true : null,
  maxWait ?? null,
  follow === true ? true : null,
]

const decisionOf = (script: Script): number[] => (script.name === 'fire' ? [script.now, script.since] : [])

/** Bytes of links in one call, about. */
const MAX_LINK_BYTES = 1_000_000

/** As stage.lua takes them; of `count` jobs, the first ones. */
function stagedArgs(graph: Graph, partition: Partition, jobs: readonly NewJob[]) {
  const { id, home, alone, whole } = graph
  if (graph.counts.get(partition.queue) !== partition.count) {
    const message = `the queue ${partition.queue} was split anew meanwhile; repeat the push`
    throw new MillpondError('StoreFailed', message, { queue: partition.queue })
  }
  graph.partitions.add(partition)
  const all: Links[] = []
  const pieces: Buffer[] = []
  let bytes = 0
  for (const job of jobs) {
    if (bytes > MAX_LINK_BYTES) break
    const links = graph.linksOf(job)
    const { parents, ended, children } = links
    all.push(links)
    for (const piece of [parents, ended, children]) if (piece.length > 0) pieces.push(piece)
    bytes += parents.length + children.length
  }
  const known = all.map((links) => links.known)
  const ended = all.map((links) => (links.ended.length === 0 ? 0 : 1))
  const head = [
    home.part,
    alone,
    whole,
    all.map(({ parents }) => parents.length),
    all.map(({ children }) => children.length),
    known.some((count) => count > 0) ? known : null,
    ended.includes(1) ? ended : null,
  ]
  return { count: all.length, head, items: [id, Buffer.concat(pieces)] }
}

/**
 * A job met one of a graph whose client fell silent, or is just pushing it. Where that graph comes to nothing, `existing` would be
 * wrong. So it is decided, and the job pushed once more.
 */
async function pushHeld(
  context: StoreContext,
  script: Script,
  partition: Partition,
  jobs: readonly NewJob[],
  given: { answers: readonly unknown[]; outcomes: PushOutcome[]; floor: number | null },
): Promise<void> {
  const isHeld = await finishHeld(context, partition, given.answers)
  const held = jobs.flatMap((job, at) => (isHeld[at] ? [{ job, at }] : []))
  if (held.length === 0) return
  if (script.name === 'stage') {
    script.graph.isHeld = true
    return
  }
  const outcomes = await pushTo(
    context,
    script,
    partition,
    held.map(({ job }) => job),
    given.floor,
  )
  for (const [i, { at, job }] of held.entries()) {
    const error = new MillpondError('StoreFailed', `the queue ${job.queue} was removed meanwhile; repeat the push`)
    given.outcomes[at] = outcomes?.[i] ?? { status: 'failed', id: job.id, error }
  }
}

const PUSHED = 0
/** Instead of `listed`, of a firing. */
const TOO_LATE = 2

function outcomeOf(answer: unknown, id: string): PushOutcome {
  // Behind the id of a job that was replaced stands a byte more.
  if (Buffer.isBuffer(answer)) {
    const status = answer.length > ID_BYTES ? 'replaced' : 'existing'
    return { status, id: idText(answer.subarray(0, ID_BYTES)) }
  }
  if (Array.isArray(answer)) return { status: 'orphan', id, parent: idText(bytesIn(answer[1])) }
  return { status: answer === PUSHED ? 'pushed' : 'full', id }
}
