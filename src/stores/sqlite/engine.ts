/**
 * The operations on jobs, as contract/sqlite/ has them, on one connection. Everything here runs inside a transaction that
 * someone else begins and ends; `settle` must run before its commit. `now` is the time to act on.
 */

import { delayAfter } from '../../backoff.ts'
import {
  type ClaimRequest,
  type Completion,
  type ExtendOutcome,
  type Extension,
  type FailOutcome,
  type Failure,
  type FinalState,
  type HistogramSlice,
  type HoldOutcome,
  type JobState,
  type PushOutcome,
  type QueueSettings,
  setsNothing,
} from '../../store.ts'
import { IdleQueues } from '../idle.ts'
import {
  type AlikeJobs,
  COMPLETION_FIELDS,
  flattenAlike,
  HOLD_FIELDS,
  idsOf,
  JOB_FIELDS,
  type PackedClaim,
  type PackedCompletions,
  type PackedJobs,
} from './flat.ts'
import { type Account, Ledger } from './ledger.ts'
import type { NotPushed, Stale } from './protocol.ts'
import { stateFrom } from './records.ts'
import { type Connection, type Statement, Statements } from './statements.ts'
import { bindable, integer, integerOrNull, text, textOrNull, type Value } from './values.ts'

/** Of a queue that does not exist: what it would have. */
const DEFAULT_LEASE = 30_000

const isFinal = (state: JobState): state is FinalState => state === 'done' || state === 'dead' || state === 'cancelled'

export class Engine {
  readonly statements: Statements
  readonly ledger: Ledger
  readonly idle = new IdleQueues()

  /** Fences are given out above it. */
  readonly floor: number

  constructor(connection: Connection, floor = 0) {
    this.floor = floor
    this.statements = new Statements(connection)
    this.ledger = new Ledger(this.statements)
  }

  configure(settings: QueueSettings): void {
    if (setsNothing(settings)) return
    const { queue, capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = settings
    this.ledger.reopen(queue)
    this.statements.get('configure/configure').run({
      queue,
      set_capacity: capacity === undefined ? 0 : 1,
      capacity: capacity ?? null,
      keep_done: keepDone ?? null,
      keep_dead: keepDead ?? null,
      paused: paused === undefined ? null : Number(paused),
      attempts: attempts ?? null,
      set_timeout: timeout === undefined ? 0 : 1,
      timeout: timeout ?? null,
      lease: lease ?? null,
      backoff_base: backoff?.base ?? null,
      backoff_factor: backoff?.factor ?? null,
      backoff_max: backoff?.max ?? null,
      backoff_jitter: backoff?.jitter ?? null,
    })
    if (capacity !== undefined) this.ledger.ring({ kind: 'room', queue })
    if (paused === false) this.ledger.ring({ kind: 'work', queue })
  }

  /** `packed`: of `packJobs`. */
  push(packed: PackedJobs, now: number): NotPushed {
    if (Array.isArray(packed)) return this.#pushEach(packed, now)
    if (this.ledger.open(packed.queue).room < packed.count) return this.#pushEach(flattenAlike(packed), now)
    return this.#pushAlike(packed, now)
  }

  #pushAlike(jobs: AlikeJobs, now: number): NotPushed {
    const { count, queue, priority, delay, runAt, attempts, timeout, group, trace, ids, bodies } = jobs
    const due = Math.max(now, runAt ?? now + delay)
    const state = due <= now ? 'waiting' : 'scheduled'
    const account = this.ledger.open(queue)
    const limits = { attempts: attempts ?? account.attempts, timeout: timeout ?? account.timeout }
    const common = { queue, state, priority, now, due_at: due, group, trace, ...limits }
    const stored = this.statements.get('push/insert_alike').run({ ...common, ids, bodies })
    account.move(null, state, stored)
    if (stored === count) return []
    const list = idsOf(ids)
    const known = this.statements.get('push/known').all({ ids: JSON.stringify(list), stored })
    const seen = new Set(known.map(({ id }) => text(id)))
    const outcomes: NotPushed = []
    for (const [at, id] of list.entries()) {
      if (seen.has(id)) outcomes.push({ at, outcome: { status: 'existing', id } })
      seen.add(id)
    }
    return outcomes
  }

  /** `flat`: of `flattenJobs`. */
  #pushEach(flat: readonly Value[], now: number): NotPushed {
    const insert = this.statements.get('push/insert')
    const outcomes: NotPushed = []
    for (let i = 0, at = 0; i < flat.length; i += JOB_FIELDS, at++) {
      const id = text(flat[i])
      const queue = text(flat[i + 1])
      const key = textOrNull(bindable(flat[i + 7]))
      const runAt = flat[i + 4]
      const due = Math.max(now, typeof runAt === 'number' ? runAt : now + integer(flat[i + 3]))
      const account = this.ledger.open(queue)
      if (account.room <= 0) {
        // A repeated push must not be refused for want of room: its job is in already.
        outcomes.push({ at, outcome: this.#existing(id, queue, key) ?? { status: 'full', id } })
        continue
      }
      const state = due <= now ? 'waiting' : 'scheduled'
      const changed = insert.run({
        id,
        queue,
        state,
        now,
        key,
        due_at: due,
        priority: bindable(flat[i + 2]),
        attempts: bindable(flat[i + 5]) ?? account.attempts,
        timeout: bindable(flat[i + 6]) ?? account.timeout,
        group: bindable(flat[i + 8]),
        trace: bindable(flat[i + 9]),
        encoding: bindable(flat[i + 10]),
        data: bindable(flat[i + 11]),
      })
      if (changed === 1) {
        account.move(null, state)
        continue
      }
      const existing = this.#existing(id, queue, key)
      if (existing === null) throw new Error(`millpond: job ${id} was not stored, and nothing stands in its way`)
      outcomes.push({ at, outcome: existing })
    }
    return outcomes
  }

  /** Inside a transaction that others write in, too: an error leaves nothing of the push behind, and theirs as it was. */
  pushWithin(flat: readonly Value[], now: number): NotPushed {
    this.settle()
    this.statements.get('push/savepoint').run()
    try {
      const outcomes = this.#pushEach(flat, now)
      this.settle()
      this.statements.get('push/release').run()
      return outcomes
    } catch (error) {
      this.ledger.forget()
      try {
        this.statements.get('push/undo').run()
        this.statements.get('push/release').run()
      } catch {
        // Some errors make SQLite roll back everything, savepoints too; the first error is the one to tell.
      }
      throw error
    }
  }

  #existing(id: string, queue: string, key: string | null): PushOutcome | null {
    const row = this.statements.get('push/existing').get({ id, queue, key })
    return row === undefined ? null : { status: 'existing', id: text(row.id) }
  }

  claim({ queue, worker, limit, lease: asked }: ClaimRequest, now: number): PackedClaim {
    const account = this.ledger.find(queue)
    const lease = asked ?? account?.lease ?? DEFAULT_LEASE
    if (account === null || account.paused) return { now, lease, jobs: [], retryAfter: null }
    const parameters = { queue, worker, limit, now, lease_until: now + lease, floor: this.floor }
    const jobs = this.statements.get('claim/claim').lists(parameters)
    account.move('waiting', 'running', jobs.length)
    return { now, lease, jobs, retryAfter: jobs.length < limit ? this.#nextDue(queue, now) : null }
  }

  /** The answer to a claim that finds nothing; undefined: it might find something. Only reads. */
  emptyClaim(request: ClaimRequest, now: number): PackedClaim | undefined {
    const { queue } = request
    if (this.statements.get('claim/probe').get({ queue }) !== undefined) return undefined
    const row = this.statements.get('counts/queue').get({ queue })
    const lease = request.lease ?? (row === undefined ? DEFAULT_LEASE : integer(row.lease))
    const claimable = row !== undefined && integer(row.paused) === 0
    return { now, lease, jobs: [], retryAfter: claimable ? this.#nextDue(queue, now) : null }
  }

  #nextDue(queue: string, now: number): number | null {
    const due = integerOrNull(this.statements.get('claim/next_due').get({ queue })?.due_at ?? null)
    return due === null ? null : Math.max(0, due - now)
  }

  /** `packed`: of `packCompletions`. Null: nothing was done, since some are stale, and which ones is only seen one by one. */
  complete(queue: string, packed: PackedCompletions, now: number): Stale | null {
    if (Array.isArray(packed)) return this.#completeEach(queue, packed, now)
    const { count, held } = packed
    const account = this.ledger.find(queue)
    const keeps = account?.keeps('done') === true
    const all = this.statements.get(keeps ? 'complete/keep_all' : 'complete/remove_all')
    this.statements.get('complete/savepoint').run()
    const changed = all.run(keeps ? { queue, held, now } : { queue, held })
    if (changed !== count) this.statements.get('complete/undo').run()
    this.statements.get('complete/release').run()
    if (changed !== count) return null
    account?.finishAll(count, 'done')
    return []
  }

  #completeEach(queue: string, flat: readonly Value[], now: number): Stale {
    const account = this.ledger.find(queue)
    const keep = account?.keeps('done') ? this.statements.get('complete/keep') : null
    const remove = this.statements.get('complete/remove')
    const stale: Stale = []
    for (let i = 0, at = 0; i < flat.length; i += COMPLETION_FIELDS, at++) {
      const id = text(flat[i])
      const fence = bindable(flat[i + 1])
      const changed = keep
        ? keep.run({ queue, id, fence, now, encoding: bindable(flat[i + 2]), result: bindable(flat[i + 3]) })
        : remove.run({ queue, id, fence })
      if (changed === 1) account?.finish(id, 'running', 'done')
      else stale.push(at)
    }
    return stale
  }

  completeOne(queue: string, { id, fence, result }: Completion, now: number): HoldOutcome {
    const stale = this.#completeEach(queue, [id, fence, result?.encoding ?? null, result?.body ?? null], now)
    return stale.length === 0 ? 'ok' : 'stale'
  }

  fail(queue: string, failures: readonly Failure[], now: number): FailOutcome[] {
    const account = this.ledger.find(queue)
    return failures.map(({ id, fence, error, delay: asked }) => {
      const claim = { queue, id, fence }
      const delay = asked === 'backoff' ? this.#backoff(account, claim) : asked
      const row = this.statements.get('fail/fail').get({ ...claim, now, delay, error: JSON.stringify(error) })
      if (row === undefined || account === null) return 'stale'
      const state = stateFrom(row.state)
      if (state !== 'dead') {
        account.move('running', state)
        return 'retry'
      }
      this.#finish(account, id, 'running', 'dead', this.statements.get('fail/remove'))
      return 'dead'
    })
  }

  /** Null where the claim is stale. */
  #backoff(account: Account | null, claim: { queue: string; id: string; fence: number }): number | null {
    if (account === null) return null
    const row = this.statements.get('fail/attempt').get(claim)
    return row === undefined ? null : delayAfter(account.backoff, integer(row.attempt), Math.random())
  }

  #finish(account: Account, id: string, from: JobState, to: FinalState, remove: Statement): void {
    account.finish(id, from, to)
    if (!account.keeps(to)) remove.run({ id })
  }

  /** `flat`: of `flattenHolds`. */
  release(queue: string, flat: readonly Value[]): Stale {
    const account = this.ledger.find(queue)
    const release = this.statements.get('release/release')
    const stale: Stale = []
    for (let i = 0, at = 0; i < flat.length; i += HOLD_FIELDS, at++) {
      const changed = release.run({ queue, id: text(flat[i]), fence: bindable(flat[i + 1]) })
      if (changed === 1) account?.move('running', 'waiting')
      else stale.push(at)
    }
    return stale
  }

  extend(queue: string, asked: number | null, extensions: readonly Extension[], now: number): ExtendOutcome[] {
    const lease = asked ?? this.ledger.find(queue)?.lease ?? DEFAULT_LEASE
    const extend = this.statements.get('extend/extend')
    const report = this.statements.get('extend/report')
    const cancelled = this.statements.get('extend/cancelled')
    return extensions.map(({ id, fence, progress }) => {
      const claim = { queue, id, fence, lease_until: now + lease }
      const changed =
        progress === null
          ? extend.run(claim)
          : report.run({ ...claim, encoding: progress.encoding, progress: progress.body })
      if (changed === 1) return 'ok'
      return cancelled.get({ queue, id, fence }) === undefined ? 'stale' : 'cancelled'
    })
  }

  cancel(ids: readonly string[], now: number): (FinalState | null)[] {
    return ids.map((id) => {
      const row = this.statements.get('cancel/look').get({ id })
      if (row === undefined) return null
      const state = stateFrom(row.state)
      if (isFinal(state)) return state
      const account = this.ledger.open(text(row.queue))
      if (account.keeps('cancelled')) this.statements.get('cancel/cancel').run({ id, now })
      this.#finish(account, id, state, 'cancelled', this.statements.get('cancel/remove'))
      return 'cancelled'
    })
  }

  record(slices: readonly HistogramSlice[], now: number): void {
    const minute = Math.floor(now / 60_000)
    const record = this.statements.get('record/record')
    for (const { queue, priority, metric, buckets } of slices) {
      for (const [bucket, count] of Object.entries(buckets)) {
        record.run({ minute, queue, priority, metric, bucket: Number(bucket), count })
      }
    }
  }

  /** Writes what is still to be written of this transaction. */
  settle(): void {
    this.ledger.write()
  }
}
