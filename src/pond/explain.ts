/** Why a job does not run: what `pond.explain` tells. */

import type { Store } from '../store.ts'
import { silentFor } from '../values/figures/worker-text.ts'
import type { JobRecord, JobState } from '../values/jobs/records.ts'
import { type StepWait, waitsFrom } from '../values/jobs/step-info.ts'
import { needs } from '../values/operations/capabilities.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { LAST_TIME } from '../values/time/duration.ts'
import { isSilent } from './worker-info.ts'

/** What keeps a job from running. */
export type WaitReason =
  /** The job is blocked: it waits for so many jobs. `parents`: the first ten of them, by id. */
  | { kind: 'parents'; jobs: number; parents: { id: string; queue: string; state: JobState }[] }
  /** The job is scheduled. */
  | { kind: 'due'; at: Date }
  /** It is parked: its handler waits for a time, a signal or a child. */
  | { kind: 'parked'; waits: readonly StepWait[] }
  /** It was pushed with `once: { whenRunning: 'follow' }`, and the job that has its key has not ended. */
  | { kind: 'follows'; key: string }
  /** The queue is paused; see `queue.pause`. */
  | { kind: 'paused' }
  /** As many jobs of the queue run as may. */
  | { kind: 'queueLimit'; running: number; limit: number | null }
  /** The queue's rate, or a pause by `ctx.rateLimited`, allows the next start then. */
  | { kind: 'queueRate'; until: Date }
  /** As many jobs of its group run as may. `group`: empty for the jobs without one. */
  | { kind: 'groupLimit'; group: string; running: number; limit: number | null }
  /** The rate or a pause of its group allows no start before `until`. */
  | { kind: 'groupRate'; group: string; until: Date }
  /** No job of its queue runs, and no worker has asked for one since then; null: none ever has. It is known to within half a minute. */
  | { kind: 'noWorker'; lastClaim: Date | null }
  /** So many jobs come first, of the queue, or of its group where groups take turns. `more`: there may be further ones. */
  | { kind: 'behind'; jobs: number; more: boolean }

export interface Explanation {
  id: string
  queue: string
  state: JobState
  /** All that holds it back now, with the queue's rate looked at for a job of cost 1; empty if nothing does, or if it does not wait. */
  reasons: WaitReason[]
  /** The same in words. */
  text: string
}

/**
 * Milliseconds without a claim after which nobody seems to claim. Workers do so about once a second, and it is noted
 * every half a minute.
 */
const SILENCE = DEFAULTS.store.workerSilence
/** Parents that are told of a blocked job, and those that are looked at in a call. */
const MAX_SHOWN = 10
const PARENTS_PER_CALL = 500
/** Stores may stop counting here. */
const MAX_COUNTED = DEFAULTS.store.ahead

/** @returns undefined: the store does not know the job @throws NotSupported, and as the methods of `Store` do */
export async function explain(store: Store, id: string): Promise<Explanation | undefined> {
  needs(store, 'find', 'explain')
  const [record] = await store.operations.find({ ids: [id] })
  if (!record) return undefined
  const { queue, state } = record
  const reasons = state === 'waiting' ? await reasonsOf(store, record) : []
  if (state === 'blocked') reasons.push(await parentsReason(store, record))
  if (record.parked !== undefined && state !== 'waiting') {
    reasons.unshift({ kind: 'parked', waits: waitsFrom(record.parked) })
  } else if (record.follows) reasons.push({ kind: 'follows', key: record.key ?? '' })
  else if (state === 'scheduled') reasons.push({ kind: 'due', at: new Date(Math.min(record.dueAt, LAST_TIME)) })
  const silent = state === 'running' ? await silenceOf(store, record) : ''
  return { id, queue, state, reasons, text: textOf(record, reasons, silent) }
}

/** Of the worker of a running job: what is to be said if it is silent. */
async function silenceOf({ operations, capabilities }: Store, { queue, worker }: JobRecord): Promise<string> {
  if (!capabilities.workers) return ''
  const own = (await operations.workers({ queue })).find(({ id }) => id === worker)
  if (own === undefined || !isSilent(own)) return ''
  return `, which is ${silentFor(own.silence)}: it may have been killed, and the job comes back when its lease ends`
}

async function parentsReason(store: Store, { id, waitsFor = 0 }: JobRecord): Promise<WaitReason> {
  const { operations } = store
  const [relatives] = await operations.relatives({ ids: [id], limit: DEFAULTS.bounds.parents.most })
  const ids = relatives?.parents ?? []
  const parents: { id: string; queue: string; state: JobState }[] = []
  for (let from = 0; from < ids.length && parents.length < MAX_SHOWN; from += PARENTS_PER_CALL) {
    const some = ids.slice(from, from + PARENTS_PER_CALL)
    for (const [at, parent] of (await operations.relatives({ ids: some, limit: 1 })).entries()) {
      if (parent === null || isFinal(parent.state)) continue
      parents.push({ id: some[at] ?? '', queue: parent.queue, state: parent.state })
    }
  }
  return { kind: 'parents', jobs: waitsFor, parents: parents.slice(0, MAX_SHOWN) }
}

const isFinal = (state: JobState) => state === 'done' || state === 'dead' || state === 'cancelled'

function parentsText({ jobs, parents }: Extract<WaitReason, { kind: 'parents' }>): string {
  const shown = parents.map(({ id, queue, state }) => `${id} (${queue}, ${state})`).join(', ')
  const more = jobs - parents.length
  const rest = more > 0 && parents.length > 0 ? `, and ${more} more` : ''
  return `${jobsOf(jobs)} ${jobs === 1 ? 'has' : 'have'} not ended${parents.length > 0 ? `: ${shown}${rest}` : ''}`
}

async function reasonsOf(store: Store, { id, queue, group: name }: JobRecord): Promise<WaitReason[]> {
  const { operations, capabilities } = store
  const group = name ?? ''
  const [[stats], [own], jobs] = await Promise.all([
    operations.stats({ queue, minutes: 0 }),
    capabilities.groups ? operations.groups({ queue, group, limit: 1 }) : [],
    operations.ahead({ id }),
  ])
  const reasons: WaitReason[] = []
  const limits = stats?.limits
  const after = (ms: number) => new Date(Date.now() + ms)
  if (stats !== undefined && stats.counts.running === 0 && (stats.lastClaim === null || stats.lastClaim > SILENCE)) {
    reasons.push({ kind: 'noWorker', lastClaim: stats.lastClaim === null ? null : after(-stats.lastClaim) })
  }
  if (stats?.paused) reasons.push({ kind: 'paused' })
  if (stats?.nextStart === null) {
    reasons.push({ kind: 'queueLimit', running: stats.counts.running, limit: limits?.running ?? null })
  } else if (stats?.nextStart) {
    reasons.push({ kind: 'queueRate', until: after(stats.nextStart) })
  }
  if (own !== undefined && own.waiting > 0 && own.nextStart === null) {
    const limit = own.limits?.running ?? limits?.groupRunning ?? null
    reasons.push({ kind: 'groupLimit', group, running: own.running, limit })
  } else if (own?.nextStart) {
    reasons.push({ kind: 'groupRate', group, until: after(own.nextStart) })
  }
  if (jobs) reasons.push({ kind: 'behind', jobs, more: jobs >= MAX_COUNTED })
  return reasons
}

function textOf({ id, state, worker }: JobRecord, reasons: readonly WaitReason[], silent: string): string {
  if (state === 'running') return `Job ${id} runs on worker ${worker}${silent}.`
  if (state !== 'blocked' && state !== 'waiting' && state !== 'scheduled') return `Job ${id} is ${state}.`
  if (reasons.length === 0) return `Job ${id} waits for a free worker; nothing else holds it back.`
  return `Job ${id} waits: ${reasons.map(wordsOf).join('; ')}.`
}

function wordsOf(reason: WaitReason): string {
  switch (reason.kind) {
    case 'parents':
      return parentsText(reason)
    case 'parked':
      return reason.waits.map(waitText).join(', ')
    case 'due':
      return `it is due at ${reason.at.toISOString()}`
    case 'follows':
      return `another job with the key ${JSON.stringify(reason.key)} has not ended`
    case 'noWorker':
      if (reason.lastClaim === null) return 'no worker has ever asked its queue for jobs'
      return `no worker has asked its queue for jobs since ${reason.lastClaim.toISOString()}`
    case 'paused':
      return 'its queue is paused'
    case 'queueLimit':
      return `its queue runs ${jobsOf(reason.running)}, and its limit is ${reason.limit}`
    case 'queueRate':
      return `the rate or a pause of its queue allows the next start at ${reason.until.toISOString()}`
    case 'groupLimit':
      if (reason.group === '')
        return `${reason.running} of the jobs without a group run, and their limit is ${reason.limit}`
      return `its group ${reason.group} runs ${jobsOf(reason.running)}, and its limit is ${reason.limit}`
    case 'groupRate':
      return reason.group === ''
        ? `the rate or a pause of the jobs without a group allows the next start at ${reason.until.toISOString()}`
        : `the rate or a pause of its group ${reason.group} allows the next start at ${reason.until.toISOString()}`
    case 'behind':
      if (reason.more) return `${reason.jobs} or more jobs come before it`
      return `${jobsOf(reason.jobs)} ${reason.jobs === 1 ? 'comes' : 'come'} before it`
  }
}

const jobsOf = (count: number) => (count === 1 ? '1 job' : `${count} jobs`)

function waitText({ kind, name, until, child }: StepWait): string {
  const time = until === null ? '' : ` until ${until.toISOString()}`
  switch (kind) {
    case 'sleep':
      return `it sleeps (${name})${time}`
    case 'wait':
      return `it waits for the signal ${name.replace(/#\d+$/, '')}${time}`
    case 'run':
      return `it waits for its child ${name}${child === null ? '' : `, job ${child}`}`
    default:
      return `it tries step ${name} again${time === '' ? '' : ` not before ${until?.toISOString()}`}`
  }
}
