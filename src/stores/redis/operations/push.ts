/** Pushes: contract/redis/push.lua, and push-full.lua where a job has `once` or waits for others, or where all are stored or none. */
import type { Input } from '../../../store.ts'
import { storedUnique } from '../../../values/jobs/once.ts'
import type { NewJob, Once, PushOutcome } from '../../../values/jobs/records.ts'
import { SOON } from '../../bells.ts'
import { inChunks } from '../chunks.ts'
import type { Arg } from '../connection/calls.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, encodedBytes, ID_BYTES, idBytes, idsBytes, idText, inOnePiece, textIn } from '../wire.ts'
import { restoreSettings } from './configure.ts'

const hasLinks = ({ after = [], partOf }: NewJob): boolean => after.length > 0 || (partOf ?? null) !== null
const hasOnce = ({ key, once }: NewJob): boolean => key !== null && once !== undefined

/** Jobs that wait for each other go in one call, the others in as many as they take. */
export function push(context: StoreContext, { jobs, whole = false }: Input<'push'>): Promise<PushOutcome[]> {
  if (jobs.length === 0) return Promise.resolve([])
  return whole || jobs.some(hasLinks)
    ? pushTogether(context, jobs, whole)
    : inChunks(jobs, (some) => pushTogether(context, some, false))
}

async function pushTogether(context: StoreContext, jobs: readonly NewJob[], whole: boolean): Promise<PushOutcome[]> {
  const { head, items } = pushArgs(jobs)
  const isFull = whole || jobs.some((job) => hasLinks(job) || hasOnce(job))
  const { links, ids } = linksOf(jobs)
  const [made, ...answers] = await callScript(context, isFull ? 'push-full' : 'push', {
    head: isFull ? [...head, whole, links] : head,
    items: isFull ? [...items, ids] : items,
    safe: true,
  })
  pushed(context, jobs, made)
  return jobs.map(({ id }, at) => outcomeOf(answers.length === 0 ? PUSHED : answers[at], id))
}

/** What push.lua takes of jobs; `fire` takes the same. */
export function pushArgs(jobs: readonly NewJob[]): { head: readonly unknown[]; items: readonly Arg[] } {
  const { values, which } = distinctValues(jobs)
  const queues = [...new Set(jobs.map(({ queue }) => queue))]
  const of = queues.length === 1 ? null : placesOf(jobs, queues)
  const { sizes, bytes } = inOnePiece(jobs.map(({ data }) => encodedBytes(data)))
  return { head: [values, which, sizes, queues, of], items: [idsBytes(jobs), bytes] }
}

/** @param made as scripts that store jobs answer first */
export function pushed(context: StoreContext, jobs: readonly NewJob[], made: unknown): void {
  const queues = new Set<string>()
  for (const { queue, delay, runAt } of jobs) if (runAt !== null || delay < SOON) queues.add(queue)
  for (const queue of queues) context.notifier.local.ring('work', queue)
  if (made === 1) for (const queue of new Set(jobs.map((job) => job.queue))) restoreSettings(context, queue)
}

function placesOf(jobs: readonly NewJob[], queues: readonly string[]): number[] {
  const places = new Map(queues.map((queue, at) => [queue, at + 1]))
  return jobs.map(({ queue }) => places.get(queue) ?? 1)
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

/** As push-full.lua takes it. */
const packedOnce = ({ unique, replace, maxWait, follow }: Once) => [
  storedUnique(unique),
  replace === true ? true : null,
  maxWait ?? null,
  follow === true ? true : null,
]

/** As push-full.lua takes them. */
function linksOf(jobs: readonly NewJob[]): { links: unknown[] | null; ids: Buffer } {
  if (!jobs.some(hasLinks)) return { links: null, ids: Buffer.alloc(0) }
  const ids: string[] = []
  const links = jobs.map((job) => {
    if (!hasLinks(job)) return false
    const after = [...new Set(job.after)]
    ids.push(...after)
    if (job.partOf !== undefined) ids.push(job.partOf)
    return [after.length, job.onDead === 'run', job.partOf !== undefined]
  })
  return { links, ids: idBytes(ids.join('')) }
}

const PUSHED = 0
const WITHHELD = 'w'.charCodeAt(0)

export function outcomeOf(answer: unknown, id: string): PushOutcome {
  if (Buffer.isBuffer(answer)) {
    if (answer.length === 1 && answer[0] === WITHHELD) return { status: 'withheld', id }
    // Behind the id of a job that was replaced stands a byte more.
    const status = answer.length > ID_BYTES ? 'replaced' : 'existing'
    return { status, id: idText(answer.subarray(0, ID_BYTES)) }
  }
  if (Array.isArray(answer)) {
    const other = idText(bytesIn(answer[1]))
    return textIn(answer[0]) === 'held' ? { status: 'held', id: other } : { status: 'orphan', id, parent: other }
  }
  return { status: answer === PUSHED ? 'pushed' : 'full', id }
}
