/**
 * Claims, over all partitions of a queue. One partition is asked for everything, each time the next one; where it comes short, the others
 * share what is missing. So order holds within a partition, and over all of them about: a claim that is smaller than the backlog of its
 * first partition sees no other.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Claimed, ClaimedJob, ClaimRequest } from '../../../store.ts'
import { isMillpondError } from '../../../values/errors.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context, DoubtfulClaim } from '../context.ts'
import type { Partition } from '../partition.ts'
import { Failures } from '../per-partition.ts'
import {
  bytesIn,
  ID_BYTES,
  idBytes,
  idText,
  leastOf,
  listBefore,
  numberIn,
  recordIn,
  timeOrNull,
  unexpected,
} from '../wire.ts'
import { restoreSettings } from './configure.ts'

interface ClaimReply extends Claimed {
  /** Ask again: one answer holds so many bytes only. Asked for nothing: there may be something. */
  more: boolean
  /** Whether the queue is listed. */
  known: boolean
}

/** Rejects only where nothing was given: what some partitions gave is not dropped because others cannot be reached. */
export async function claim(context: Context, request: ClaimRequest): Promise<Claimed> {
  const { calls, queues, notifier } = context
  calls.assertOpen()
  notifier.local.concern(request.queue)
  // Without a wait where it is known: calls are sent in the order in which they are made.
  const partitions = queues.known(request.queue) ?? (await queues.look(request.queue))
  const turn = context.turn++ % partitions.length
  const claimed = { now: 0, lease: Number.POSITIVE_INFINITY, jobs: [], retryAfter: null, limited: false } as Claimed
  const failures = new Failures()
  /** What was given stays given, whatever fails later. @returns the partitions that may have more */
  const from = async (asked: readonly Partition[], limitOf: (at: number) => number): Promise<Partition[]> => {
    const replies = await Promise.all(
      asked.map((partition, at) => failures.noted(claimFrom(context, partition, request, limitOf(at)))),
    )
    for (const reply of replies) if (reply !== undefined) add(claimed, reply)
    return asked.filter((_, at) => replies[at]?.more || (limitOf(at) > 0 && replies[at]?.jobs.length === limitOf(at)))
  }
  const order = [...partitions.slice(turn), ...partitions.slice(0, turn)]
  const again = await from(order.slice(0, 1), () => request.limit)
  for (let rest = [...order.slice(1), ...again]; ; ) {
    const left = request.limit - claimed.jobs.length
    if (left <= 0 || rest.length === 0) break
    // Asked for nothing, each tells whether there is anything: fewer round trips than asking one after the other.
    if (rest.length > 1) rest = await from(rest, () => 0)
    const asked = rest.slice(0, left)
    const shareOf = (at: number) => Math.floor(left / asked.length) + (at < left % asked.length ? 1 : 0)
    rest = [...rest.slice(left), ...(await from(asked, shareOf))]
  }
  const { jobs } = claimed
  if (jobs.length === 0) failures.throwFirst()
  else notifier.local.ring('room', request.queue)
  // By time among equals: places are each partition's own.
  if (partitions.length > 1) jobs.sort((a, b) => b.priority - a.priority || a.pushedAt - b.pushedAt)
  return { ...claimed, retryAfter: jobs.length < request.limit ? claimed.retryAfter : null }
}

function add(claimed: Claimed, { now, lease, jobs, retryAfter, limited }: Claimed): void {
  claimed.now = Math.max(claimed.now, now)
  claimed.lease = Math.min(claimed.lease, lease)
  claimed.retryAfter = leastOf(claimed.retryAfter, retryAfter)
  claimed.limited ||= limited
  claimed.jobs = claimed.jobs.length === 0 ? jobs : [...claimed.jobs, ...jobs]
}

async function claimFrom(
  context: Context,
  partition: Partition,
  { queue, worker, lease, minPriority = 0, perGroup = 1 }: ClaimRequest,
  limit: number,
): Promise<ClaimReply> {
  const { doubtfulClaims, now, timeout } = context
  const before = doubtfulClaims.get(doubtKey(partition, worker))
  if (before !== undefined) await giveBack(context, before)
  const call = randomUUID()
  const { serverAhead } = partition
  const latest = serverAhead === null ? null : Math.floor(serverAhead + performance.now() + timeout)
  let answer: readonly unknown[]
  try {
    const head = [limit, lease, worker, call, latest, minPriority, perGroup]
    answer = await callScript(context, 'claim', partition, { head })
  } catch (error) {
    if (limit > 0 && !isMillpondError(error, 'Closed')) doubt(context, { partition, worker, call })
    throw error
  }
  const reply = claimReply(answer)
  if (now() === null) partition.serverAhead = reply.now - performance.now()
  if (!reply.known) restoreSettings(context, queue)
  return reply
}

/** As `claim.lua` answers. */
function claimReply(reply: readonly unknown[]): ClaimReply {
  const [now, lease, retryAfter, more, known, fence, ids, others, ...records] = reply
  const jobs = records.map((bytes, at): ClaimedJob => {
    const { place: _, cost: __, ...kept } = recordIn(bytesIn(bytes))
    const id = idText(bytesIn(ids), at * ID_BYTES)
    return { id, fence: numberIn(fence), attempt: 1, dueAt: kept.pushedAt, ...kept }
  })
  if (jobs.length > 0) tellOthers(jobs, bytesIn(others))
  return {
    now: numberIn(now),
    lease: numberIn(lease),
    retryAfter: timeOrNull(retryAfter),
    more: more === 1,
    known: known !== 0,
    limited: known === 2,
    jobs,
  }
}

/** Jobs that were claimed before, or were due at a time of their own. */
function tellOthers(jobs: ClaimedJob[], others: Buffer): void {
  const numbers = others.length === 0 ? [] : listBefore(others).list.map(numberIn)
  for (let at = 0; at < numbers.length; at += 4) {
    const [place = 0, fence = 0, attempt = 0, due = 0] = numbers.slice(at, at + 4)
    const job = jobs[place - 1]
    if (job === undefined) throw unexpected(place, 'the place of a job')
    job.fence = fence
    job.attempt = attempt
    if (due !== 0) job.dueAt = due
  }
}

/** Milliseconds between two tries to give back what doubtful claims got, and for the last when the store closes. */
const RETRY_PAUSE = 1000

/**
 * A claim whose answer is lost may have taken effect. What it got is asked for and released, before the same worker claims there again and once a
 * second: its jobs would be lost to a worker that never heard of them, and each would lose an attempt.
 */
async function giveBack(context: Context, doubt: DoubtfulClaim): Promise<void> {
  const { partition, worker, call } = doubt
  const answer = await callScript(context, 'claim', partition, { head: [0, null, worker, call, null], again: true })
  const { jobs } = claimReply(answer)
  if (jobs.length > 0) {
    const holds = jobs.flatMap(({ id, fence }) => [idBytes(id), fence])
    await callScript(context, 'release', partition, { items: holds, again: true })
    context.notifier.local.ring('work', partition.queue)
  }
  const key = doubtKey(partition, worker)
  if (context.doubtfulClaims.get(key) === doubt) context.doubtfulClaims.delete(key)
}

async function giveBackAll(context: Context): Promise<void> {
  await Promise.allSettled([...context.doubtfulClaims.values()].map((doubt) => giveBack(context, doubt)))
}

function doubt(context: Context, claim: DoubtfulClaim): void {
  const { doubtfulClaims, calls } = context
  doubtfulClaims.set(doubtKey(claim.partition, claim.worker), claim)
  if (doubtfulClaims.size > 1) return
  const retry = async (): Promise<void> => {
    while (doubtfulClaims.size > 0 && !calls.closed) {
      await pause(RETRY_PAUSE, undefined, { ref: false })
      await giveBackAll(context)
    }
  }
  void retry()
}

/** As far as the server can be reached. */
export async function settleClaims(context: Context): Promise<void> {
  if (context.doubtfulClaims.size === 0 || context.calls.client.status !== 'ready') return
  await Promise.race([giveBackAll(context), pause(RETRY_PAUSE, undefined, { ref: false })])
}

const doubtKey = ({ tag, part }: Partition, worker: string): string => `${tag} ${part} ${worker}`
