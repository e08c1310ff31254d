/**
 * Claims, over all partitions of a queue. One partition is asked for everything, each time the next one; where it comes short, the others
 * share what is missing. So order holds within a partition, and over all of them about: a claim that is smaller than the backlog of its
 * first partition sees no other.
 *
 *   well ──fails, or lets the others wait──► away: claims leave it out ──it answers again──► well
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isMillpondError } from '../../../values/errors/errors.ts'
import type { Claimed, ClaimedJob, ClaimRequest } from '../../../values/jobs/records.ts'
import { callScript } from '../connection/script-call.ts'
import type { DoubtfulClaim, StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { inTime } from '../patience.ts'
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
import { noteListed, restoreSettings } from './configure.ts'

interface ClaimReply extends Claimed {
  /** Ask again: one answer holds so many bytes only. Asked for nothing: there may be something. */
  more: boolean
  /** Whether the queue is listed. */
  known: boolean
  /** It is listed with another number of partitions. */
  isSplitAnew: boolean
}

/** Of a claim whose queue is split anew. */
const MAX_TRIES = 3

/** Rejects only where nothing was given: what some partitions gave is not dropped because others cannot be reached. */
export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { calls, queues, notifier } = context
  const { queue } = request
  calls.assertOpen()
  notifier.local.concern(queue)
  for (let tries = 1; ; tries++) {
    // Without a wait where it is known: calls are sent in the order in which they are made.
    const partitions = queues.known(queue) ?? (await queues.look(queue))
    const { claimed, refused } = await claimAmong(context, request, partitions)
    if (refused.length === 0) return claimed
    // It was removed meanwhile, and came back with another number of partitions. If the list has ours, theirs is out of date.
    const listed = await queues.listed(queue)
    const isOurs = listed?.length === partitions.length
    if (isOurs) await Promise.all(refused.map((partition) => noteListed(context, partition)))
    if (claimed.jobs.length > 0 || tries === MAX_TRIES) return claimed
  }
}

async function claimAmong(context: StoreContext, request: ClaimRequest, partitions: readonly Partition[]) {
  const { notifier, patience } = context
  const well = partitions.filter(({ away }) => !away)
  const asked = well.length > 0 ? well : partitions
  const first = context.rounds++ % asked.length
  let answered = false
  const claimed = { now: 0, lease: Number.POSITIVE_INFINITY, jobs: [], retryAfter: null, limited: false } as Claimed
  const failures = new Failures()
  const refused: Partition[] = []
  /** What was given stays given, whatever fails later. @returns the partitions that may have more */
  const from = async (some: readonly Partition[], limitOf: (at: number) => number, others: boolean) => {
    const calls = some.map((partition, at) => patience.timed(claimFrom(context, partition, request, limitOf(at))))
    // Of a queue in one partition there is nothing else to wait for.
    const settled =
      partitions.length === 1 ? await Promise.allSettled(calls) : await inTime(calls, patience.limit, others)
    return some.filter((partition, at) => {
      const result = settled[at]
      if (result?.status === 'fulfilled') {
        const { more, jobs, isSplitAnew } = result.value
        answered = true
        if (isSplitAnew) refused.push(partition)
        add(claimed, result.value)
        return more || (limitOf(at) > 0 && jobs.length === limitOf(at))
      }
      if (result !== undefined) failures.note(result.reason)
      if (partitions.length > 1) leaveOut(context, partition, request, result === undefined ? calls[at] : undefined)
      return false
    })
  }
  const order = [...asked.slice(first), ...asked.slice(0, first)]
  const again = await from(order.slice(0, 1), () => request.limit, order.length > 1)
  for (let rest = [...order.slice(1), ...again]; ; ) {
    const left = request.limit - claimed.jobs.length
    if (left <= 0 || rest.length === 0) break
    // Asked for nothing, each tells whether there is anything: fewer round trips than asking one after the other.
    if (rest.length > 1) rest = await from(rest, () => 0, answered)
    const sharing = rest.slice(0, left)
    const shareOf = (at: number) => Math.floor(left / sharing.length) + (at < left % sharing.length ? 1 : 0)
    rest = [...rest.slice(left), ...(await from(sharing, shareOf, answered))]
  }
  const { jobs } = claimed
  if (jobs.length === 0) {
    for (const partition of partitions) {
      if (partition.trouble !== undefined) failures.note(partition.trouble.reason)
      partition.trouble = undefined
    }
    failures.throwFirst()
  }
  if (jobs.length > 0) notifier.local.ring('room', request.queue)
  // By time among equals: places are each partition's own.
  if (partitions.length > 1) jobs.sort((a, b) => b.priority - a.priority || a.pushedAt - b.pushedAt)
  return { claimed: { ...claimed, retryAfter: jobs.length < request.limit ? claimed.retryAfter : null }, refused }
}

/** Milliseconds between two questions to a partition that is away. */
const AWAY_PAUSE = 250

/**
 * Claims do without a partition until it answers again.
 * @param late the claim that it has not answered: what that brings is given back
 */
function leaveOut(
  context: StoreContext,
  partition: Partition,
  request: ClaimRequest,
  late?: Promise<ClaimReply>,
): void {
  const { calls, notifier } = context
  late
    ?.then(
      ({ jobs }) => (jobs.length > 0 ? releaseAll(context, partition, jobs) : undefined),
      () => undefined,
    )
    .catch(() => undefined)
  if (partition.away) return
  partition.away = true
  const asking = async (): Promise<void> => {
    while (!calls.closed) {
      try {
        await claimFrom(context, partition, request, 0)
        break
      } catch (reason) {
        partition.trouble = { reason }
        await pause(AWAY_PAUSE, undefined, { ref: false })
      }
    }
    partition.away = false
    partition.trouble = undefined
    notifier.local.ring('work', partition.queue)
  }
  void asking()
}

/** Jobs of a claim that nobody waits for any more. */
async function releaseAll(context: StoreContext, partition: Partition, jobs: readonly ClaimedJob[]): Promise<void> {
  let left = jobs.flatMap(({ id, fence }) => [idBytes(id), fence])
  while (left.length > 0) {
    const outcomes = await callScript(context, 'release', partition, { items: left, again: true })
    if (outcomes.length === 0) break
    left = left.slice(2 * outcomes.length)
  }
  context.notifier.local.ring('work', partition.queue)
}

function add(claimed: Claimed, { now, lease, jobs, retryAfter, limited }: Claimed): void {
  claimed.now = Math.max(claimed.now, now)
  claimed.lease = Math.min(claimed.lease, lease)
  claimed.retryAfter = leastOf(claimed.retryAfter, retryAfter)
  claimed.limited ||= limited
  claimed.jobs = claimed.jobs.length === 0 ? jobs : [...claimed.jobs, ...jobs]
}

async function claimFrom(
  context: StoreContext,
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
    const head = [limit, lease, worker, call, latest, minPriority, perGroup, partition.count]
    answer = await callScript(context, 'claim', partition, { head })
  } catch (error) {
    if (limit > 0 && !isMillpondError(error, 'Closed')) doubt(context, { partition, worker, call })
    throw error
  }
  const reply = claimReply(answer)
  if (now() === null) partition.serverAhead = reply.now - performance.now()
  if (!reply.known) void lookAgain(context, queue)
  if (partition.count > 1) for (const job of reply.jobs) context.claimedFrom.set(job, partition)
  return reply
}

/**
 * A queue of which a partition is not listed may have come back with another number of them, where this process has its
 * jobs to look for. Or the server was emptied. A queue that was removed stays away until somebody pushes.
 */
async function lookAgain(context: StoreContext, queue: string): Promise<void> {
  try {
    const found = await context.queues.lookAgain(queue)
    if (found === 'split') context.notifier.local.ring('work', queue)
    if (found === 'lost') restoreSettings(context, queue)
  } catch {
    // The next claim looks again.
  }
}

/** The partition of the claim. */
export const partOfClaim = ({ claimedFrom }: StoreContext, claim: ClaimedJob): string =>
  claimedFrom.get(claim)?.part ?? ''

/** As `claim.lua` answers. */
/** Of `claim.lua`. */
export function claimReply(reply: readonly unknown[]): ClaimReply {
  const [now, lease, retryAfter, more, known, fence, ids, others, ...records] = reply
  const jobs = records.map((bytes, at): ClaimedJob => {
    const { place: _, placedAt: __, cost: ___, remember: ____, ...kept } = recordIn(bytesIn(bytes))
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
    isSplitAnew: known === 3,
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
 * A claim whose answer is lost may have taken effect. What it got is asked for and released, before the same worker claims there again and
 * once a second: its jobs would be lost to a worker that never heard of them, and each would lose an attempt.
 */
async function giveBack(context: StoreContext, doubt: DoubtfulClaim): Promise<void> {
  const { partition, worker, call } = doubt
  const answer = await callScript(context, 'claim', partition, { head: [0, null, worker, call, null], again: true })
  const { jobs } = claimReply(answer)
  if (jobs.length > 0) await releaseAll(context, partition, jobs)
  const key = doubtKey(partition, worker)
  if (context.doubtfulClaims.get(key) === doubt) context.doubtfulClaims.delete(key)
}

async function giveBackAll(context: StoreContext): Promise<void> {
  await Promise.allSettled([...context.doubtfulClaims.values()].map((doubt) => giveBack(context, doubt)))
}

function doubt(context: StoreContext, claim: DoubtfulClaim): void {
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
export async function settleClaims(context: StoreContext): Promise<void> {
  if (context.doubtfulClaims.size === 0 || context.calls.client.status !== 'ready') return
  await Promise.race([giveBackAll(context), pause(RETRY_PAUSE, undefined, { ref: false })])
}

const doubtKey = ({ tag, part }: Partition, worker: string): string => `${tag} ${part} ${worker}`
