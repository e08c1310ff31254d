/** Claims: contract/redis/claim.lua. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isMillpondError } from '../../../values/errors/errors.ts'
import type { Claimed, ClaimedJob, ClaimRequest } from '../../../values/jobs/records.ts'
import { chunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { DoubtfulClaim, StoreContext } from '../context.ts'
import { bytesIn, ID_BYTES, idBytes, idText, listBefore, numberIn, recordIn, timeOrNull, unexpected } from '../wire.ts'
import { restoreSettings } from './configure.ts'

interface ClaimReply extends Claimed {
  /** Ask again: one answer holds so many bytes only. */
  more: boolean
  /** There is no such queue, and none was removed: the server may have lost it. */
  isLost: boolean
}

export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { notifier } = context
  const { queue, limit } = request
  notifier.local.concern(queue)
  const { more, isLost, ...claimed } = await claimOnce(context, request, limit)
  if (isLost) restoreSettings(context, queue)
  // What was given stays given, if a further call fails.
  for (let goesOn = more; goesOn && claimed.jobs.length < limit; ) {
    const next = await claimOnce(context, request, limit - claimed.jobs.length).catch(() => undefined)
    claimed.jobs.push(...(next?.jobs ?? []))
    goesOn = next?.more === true && next.jobs.length > 0
    if (next !== undefined) claimed.retryAfter = next.retryAfter
  }
  if (claimed.jobs.length > 0) notifier.local.ring('room', queue)
  return claimed.jobs.length < limit ? claimed : { ...claimed, retryAfter: null }
}

async function claimOnce(
  context: StoreContext,
  { queue, worker, lease, minPriority = 0, perGroup = 1 }: ClaimRequest,
  limit: number,
): Promise<ClaimReply> {
  const { doubtfulClaims, now, timeout, serverAhead } = context
  const before = doubtfulClaims.get(doubtKey(queue, worker))
  if (before !== undefined) await giveBack(context, before)
  const call = randomUUID()
  const latest = serverAhead === null ? null : Math.floor(serverAhead + performance.now() + timeout)
  let answer: readonly unknown[]
  try {
    const head = [limit, lease, worker, call, latest, minPriority, perGroup]
    answer = await callScript(context, 'claim', { queue, head })
  } catch (error) {
    if (!isMillpondError(error, 'Closed')) doubt(context, { queue, worker, call })
    throw error
  }
  const reply = claimReply(answer)
  if (now() === null) context.serverAhead = reply.now - performance.now()
  return reply
}

/** Jobs of a claim that nobody waits for any more. */
async function releaseAll(context: StoreContext, queue: string, jobs: readonly ClaimedJob[]): Promise<void> {
  let left = jobs.flatMap(({ id, fence }) => [idBytes(id), fence])
  while (left.length > 0) {
    const outcomes = await callScript(context, 'release', { queue, items: left, again: true })
    if (outcomes.length === 0) break
    left = left.slice(2 * outcomes.length)
  }
  context.notifier.local.ring('work', queue)
}

/** Of `claim.lua`. */
export function claimReply(reply: readonly unknown[]): ClaimReply {
  const [now, lease, retryAfter, more, known, fence, ids, others, ...records] = reply
  const jobs = records.map((bytes, at): ClaimedJob => {
    const { queue: _, place: __, placedAt: ___, cost: ____, remember: _____, ...kept } = recordIn(bytesIn(bytes))
    const id = idText(bytesIn(ids), at * ID_BYTES)
    return { id, fence: numberIn(fence), attempt: 1, dueAt: kept.pushedAt, ...kept }
  })
  if (jobs.length > 0) tellOthers(jobs, bytesIn(others))
  return {
    now: numberIn(now),
    lease: numberIn(lease),
    retryAfter: timeOrNull(retryAfter),
    more: more === 1,
    isLost: known === 0,
    limited: known === 2,
    jobs,
  }
}

/** Jobs that were claimed before, or were due at a time of their own; and those that have journals. */
function tellOthers(jobs: ClaimedJob[], others: Buffer): void {
  if (others.length === 0) return
  const { list, end } = listBefore(others)
  const numbers = list.map(numberIn)
  for (let at = 0; at < numbers.length; at += 4) {
    const [place = 0, fence = 0, attempt = 0, due = 0] = numbers.slice(at, at + 4)
    const job = jobs[place - 1]
    if (job === undefined) throw unexpected(place, 'the place of a job')
    job.fence = fence
    job.attempt = attempt
    if (due !== 0) job.dueAt = due
  }
  const journals = end === others.length ? [] : listBefore(others, end).list.map(numberIn)
  for (const [place = 0, count = 0] of chunks(journals, 2)) {
    const job = jobs[place - 1]
    if (job !== undefined) job.journal = count
  }
}

/** Milliseconds between two tries to give back what doubtful claims got, and for the last when the store closes. */
const RETRY_PAUSE = 1000

/**
 * A claim whose answer is lost may have taken effect. What it got is asked for and released, before the same worker claims there again and
 * once a second: its jobs would be lost to a worker that never heard of them, and each would lose an attempt.
 */
async function giveBack(context: StoreContext, doubt: DoubtfulClaim): Promise<void> {
  const { queue, worker, call } = doubt
  const answer = await callScript(context, 'claim', { queue, head: [0, null, worker, call, null], again: true })
  const { jobs } = claimReply(answer)
  if (jobs.length > 0) await releaseAll(context, queue, jobs)
  const key = doubtKey(queue, worker)
  if (context.doubtfulClaims.get(key) === doubt) context.doubtfulClaims.delete(key)
}

async function giveBackAll(context: StoreContext): Promise<void> {
  await Promise.allSettled([...context.doubtfulClaims.values()].map((doubt) => giveBack(context, doubt)))
}

function doubt(context: StoreContext, claim: DoubtfulClaim): void {
  const { doubtfulClaims, calls } = context
  doubtfulClaims.set(doubtKey(claim.queue, claim.worker), claim)
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

const doubtKey = (queue: string, worker: string): string => `${queue} ${worker}`
