/** Does each operation on a store and on the model, and compares the answers. */

import assert from 'node:assert/strict'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Store } from '../../src/store.ts'
import type { ExtendOutcome, Hold, JobRecord, JobState } from '../../src/values/jobs/records.ts'
import { JOB_STATES } from '../../src/values/jobs/records.ts'
import type { JobFilter, Listed, ListedRecord, QueueStats } from '../../src/values/operations/requests.ts'
import type { Swept } from '../../src/values/operations/swept.ts'
import type { GroupLimits, GroupRecord } from '../../src/values/settings/limits.ts'
import { countingFences } from '../conformance/fences.ts'
import { bulkOnBoth } from './bulk.ts'
import { passes } from './filters.ts'
import { forgettable } from './forgettable.ts'
import { Model } from './model.ts'
import { IDS, type Operation } from './operations.ts'
import { live, type ModelJob, type ModelStats } from './state.ts'
import { pushWhole } from './whole.ts'

const ERROR = { code: 'HandlerFailed', name: 'Error', message: 'it failed', stack: 'at' }

export class Driver {
  readonly #store: Store
  readonly #model = new Model()
  readonly #clock: { now: number }
  /** Every claim ever, the latest first. */
  readonly #claims: (Hold & { queue: string })[] = []

  constructor(store: Store, clock: { now: number }) {
    this.#store = countingFences(store)
    this.#clock = clock
  }

  async run(operations: readonly Operation[]): Promise<void> {
    for (const operation of operations) {
      // A millisecond for each, so that what finished when is never in doubt between operations.
      this.#advance(1)
      await this.#do(operation)
      this.#model.settle()
    }
    await this.#compareAll()
  }

  #advance(ms: number): void {
    this.#clock.now += ms
    this.#model.now = this.#clock.now
  }

  async #do(operation: Operation): Promise<void> {
    const store = this.#store
    const model = this.#model
    switch (operation.op) {
      case 'push': {
        const now = this.#clock.now
        const { capabilities } = this.#store
        // Which one an id stands for that is there twice is open.
        const graphs = capabilities.graphs && new Set(operation.jobs.map(({ id }) => id)).size === operation.jobs.length
        const named = (at: number, number: number) => this.#parent(operation.jobs.slice(0, at), number)
        const jobs = operation.jobs.map(({ once, after, onDead, partOf, ...job }, at) => ({
          ...job,
          ...(once && job.key !== null && capabilities.once && { once }),
          runAt: job.runAt === null ? null : now + job.runAt,
          ...(graphs &&
            after && {
              after: after.map((number) => named(at, number)),
              onDead,
            }),
          ...(graphs && partOf !== undefined && { partOf: named(at, partOf) }),
        }))
        if (graphs && operation.whole)
          return same(await store.operations.push({ jobs, whole: true }), pushWhole(model, jobs))
        return same(await store.operations.push({ jobs }), model.push(jobs))
      }
      case 'claim': {
        const request = { ...operation, worker: `w${operation.lease}` }
        const expected = model.claim(request)
        const actual = await store.operations.claim(request)
        for (const claim of actual.jobs) {
          model.raised(claim.id, claim.fence)
          const known = expected.jobs.find(({ id }) => id === claim.id)
          if (known !== undefined && model.removed) known.fence = Math.max(known.fence, claim.fence)
          this.#claims.unshift({ id: claim.id, fence: claim.fence, claim, queue: operation.queue })
        }
        // A claim may be of a class of the store's own.
        return same({ ...actual, jobs: actual.jobs.map((claim) => ({ ...claim })) }, expected)
      }
      case 'complete': {
        const { queue, holds } = this.#holds(operation)
        const completions = holds.map((hold) => ({ ...hold, result: operation.result }))
        return same(await store.operations.complete({ queue, items: completions }), model.complete(queue, completions))
      }
      case 'fail': {
        const { queue, holds } = this.#holds(operation)
        // A delay that is in part random is not for a model.
        const random = operation.delay === 'backoff' && model.queues.get(queue)?.backoff.jitter !== 0
        const failures = holds.map((hold) => ({ ...hold, error: ERROR, delay: random ? 40 : operation.delay }))
        return same(await store.operations.fail({ queue, items: failures }), model.fail(queue, failures))
      }
      case 'release': {
        const { queue, holds } = this.#holds(operation)
        const { pause } = operation
        const releases = holds.map((hold) => ({ ...hold, pause }))
        return same(await store.operations.release({ queue, items: releases }), model.release(queue, releases))
      }
      case 'extend': {
        const { queue, holds } = this.#holds(operation)
        const extensions = holds.map((hold) => ({ ...hold, progress: operation.progress }))
        const { lease } = operation
        const outcomes = await store.operations.extend({ queue, lease, items: extensions })
        return same(this.#certain(outcomes), this.#certain(model.extend(queue, lease, extensions)))
      }
      case 'cancel':
        return same(await store.operations.cancel({ ids: operation.ids }), model.cancel(operation.ids))
      case 'sweep':
        return this.#sweep(operation.limit)
      case 'advance':
        return this.#advance(operation.ms)
      case 'configure':
        await store.operations.configure(operation.settings)
        return model.configure(operation.settings)
      case 'limit':
        await store.operations.configure({ queue: operation.queue, ...operation.settings })
        return model.configure({ queue: operation.queue, ...operation.settings })
      case 'limitGroup':
        return this.#limitGroup(operation.queue, operation.group, operation.limits)
      case 'groups':
        return this.#groups(operation.queue, operation.limit)
      case 'requeue':
        return same((await store.operations.requeue(operation)).requeued, model.requeue(operation).requeued)
      case 'requeueQueue':
        return this.#requeueQueue(operation.queue, operation.limit)
      case 'bulk':
        return bulkOnBoth(store, model, operation, this.#clock.now)
      case 'update': {
        const runAt = operation.runAt === undefined ? {} : { runAt: this.#clock.now + operation.runAt }
        const items = operation.ids.map((id) => ({ id, ...operation.change, ...runAt }))
        return same(await store.operations.update({ items }), model.update(items))
      }
      case 'remove':
        return same((await store.operations.remove({ ids: operation.ids })).removed, model.remove(operation.ids))
      case 'removeQueue':
        return this.#removeQueue(operation.queue, operation.limit)
      case 'restore':
        return this.#restore(operation.ids)
      case 'record': {
        // What a store does with slices of a queue that is not there is nobody's business.
        const slices = operation.slices.filter(({ queue }) => model.queues.has(queue))
        await store.operations.record({ slices })
        return model.record(slices)
      }
      case 'find':
        return this.#find(operation.ids)
      case 'relatives':
        return this.#relatives(operation.ids)
      case 'list':
        return this.#list(operation.queue, operation.state, operation.pages, operation.filter)
      case 'stats':
        return this.#stats(operation.minutes)
    }
  }

  /** A fence that nobody was given may be that of a job that was cancelled, where pushes begin above removed jobs. */
  #certain(outcomes: readonly ExtendOutcome[]): ExtendOutcome[] {
    return outcomes.map((outcome) => (this.#model.removed && outcome === 'cancelled' ? 'stale' : outcome))
  }

  /** Claims of one batch are all sent to the queue of the first, so that some are sent to the wrong one. */
  #holds(operation: { holds: readonly { claim: number; off: number }[]; otherQueue: boolean }) {
    const holds = operation.holds.map(({ claim, off }) => {
      const known = this.#claims[claim % Math.max(1, this.#claims.length)]
      return known === undefined ? { id: IDS[0] ?? '', fence: 1, queue: 'q' } : { ...known, fence: known.fence + off }
    })
    const queue = holds[0]?.queue ?? 'q'
    // Every other one with the claim that it came with, which must make no difference.
    const sent = holds.map(
      ({ id, fence, ...known }, at): Hold =>
        at % 2 === 0 && 'claim' in known && known.claim !== undefined
          ? { id, fence, claim: known.claim }
          : { id, fence },
    )
    return { queue: operation.otherQueue ? (queue === 'q' ? 'p' : 'q') : queue, holds: sent }
  }

  /** @param before earlier jobs of the call */
  #parent(before: readonly { id: string }[], number: number): string {
    const ids = [...before, ...this.#model.jobs.filter(live)].map(({ id }) => id)
    const any = IDS[number % IDS.length] ?? ''
    return number > 17 ? any : (ids[number % ids.length] ?? any)
  }

  async #limitGroup(queue: string, group: string, limits: GroupLimits | null): Promise<void> {
    await this.#store.operations.limitGroup?.({ queue, group, limits })
    this.#model.limitGroup(queue, group, limits)
  }

  async #sweep(limit: number): Promise<void> {
    // When such groups go is the store's matter: limits of their own, which change nothing, keep them from it for now.
    const kept = forgettable(this.#model)
    for (const { queue, group } of kept) await this.#limitGroup(queue, group, { running: null, rate: null, weight: 1 })
    await this.#sweepAll(limit)
    for (const { queue, group } of kept) await this.#limitGroup(queue, group, null)
  }

  /** Limits leave open what is taken first, so the store sweeps until there is no more. */
  async #sweepAll(limit: number): Promise<void> {
    const total: Omit<Swept, 'more' | 'queues' | 'schedules'> = { lost: [], promoted: 0, expired: 0, nextDue: null }
    for (let round = 0; ; round++) {
      assert.ok(round < 1_000, 'the sweep comes to an end')
      const { lost, promoted, expired, more, nextDue } = await this.#store.operations.sweep({ limit })
      // Finished jobs may go in one stroke, however many; one by one they keep to the limit as well: a vector says so.
      assert.ok(Math.max(lost.length, promoted) <= limit, 'a sweep keeps to its limit')
      total.lost.push(...lost)
      total.promoted += promoted
      total.expired += expired
      total.nextDue = nextDue
      // A lease that ended for good may have let a follower go, which the next sweep takes.
      if (!more && !lost.some(({ state }) => state === 'dead')) break
    }
    const expected = this.#model.sweep()
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id)
    same({ ...total, lost: total.lost.sort(byId) }, { ...expected, lost: expected.lost.sort(byId) })
    await this.#forgetKept()
  }

  /** When a job goes that was kept for its children is the store's matter, once none of them is live. */
  async #forgetKept(): Promise<void> {
    const kept = this.#model.jobs.filter(({ isKept }) => isKept).map(({ id }) => id)
    if (kept.length === 0) return
    const found = await this.#store.operations.find({ ids: kept })
    const gone = kept.filter((id, at) => found[at] === null && !this.#model.graph.hasLiveChild(id))
    this.#model.jobs = this.#model.jobs.filter(({ id, isKept }) => !(isKept && gone.includes(id)))
    this.#model.settle()
  }

  /** The contract leaves open which dead jobs come first, so the model follows, and finds no more where the store stopped. */
  async #requeueQueue(queue: string, limit: number): Promise<void> {
    const dead = this.#model.list(queue, 'dead').map(({ id }) => id)
    const { requeued: count } = await this.#store.operations.requeue({ queue, limit })
    assert.ok(count <= limit, 'requeue keeps to its limit')
    const found = await this.#store.operations.find({ ids: dead })
    const ids = dead.filter((_, i) => found[i]?.state === 'waiting' || found[i]?.state === 'blocked')
    same(count, ids.length)
    same(this.#model.requeue({ ids }).requeued, count)
    same(this.#model.requeue({ queue, limit: limit - count }).requeued, 0)
  }

  async #removeQueue(queue: string, limit: number): Promise<void> {
    let count = 0
    for (;;) {
      const { removed, more } = await this.#store.operations.remove({ queue, limit })
      assert.ok(removed <= limit, 'a removal keeps to its limit')
      count += removed
      if (!more) break
    }
    const jobs = this.#model.jobs.filter((job) => job.queue === queue)
    // A blocked job may have been cancelled between two steps, and not kept.
    if (jobs.some(({ state }) => state === 'blocked')) assert.ok(count <= jobs.length)
    else same(count, jobs.length)
    this.#model.removeQueue(queue)
  }

  /** Jobs are removed, and come back as they were. */
  async #restore(ids: readonly string[]): Promise<void> {
    const found = (await this.#store.operations.find({ ids })).filter((record) => record !== null)
    const records = [...new Map(found.map((record) => [record.id, record])).values()].filter(
      ({ state }) => state !== 'running',
    )
    const known = records.map(({ id }) => id)
    for (const record of records) {
      const job = this.#model.jobs.find(({ id }) => id === record.id)
      if (job?.state === 'blocked') record.after = this.#model.graph.awaitedBy(job)
    }
    same((await this.#store.operations.remove({ ids: known })).removed, this.#model.remove(known))
    this.#model.settle()
    same(await this.#store.operations.restore({ records }), this.#model.restore(records))
    // As a move does that was cut off. What is there stays as it is.
    const again = records.filter(({ state }) => state !== 'blocked')
    same(await this.#store.operations.restore({ records: again }), this.#model.restore(again))
  }

  async #find(ids: readonly string[]): Promise<void> {
    const found = await this.#store.operations.find({ ids })
    same(found.map(withoutWords), this.#model.find(ids).map(withoutWords))
  }

  async #relatives(ids: readonly string[]): Promise<void> {
    if (!this.#store.capabilities.graphs) return
    const found = await this.#store.operations.relatives({ ids, limit: IDS.length })
    for (const [at, relatives] of found.entries()) {
      const job = this.#model.jobs.find(({ id }) => id === ids[at])
      const { onDead, parents = [], gone = [], children = [], ...rest } = relatives ?? {}
      const own = job === undefined ? undefined : this.#model.graph.relatives(job)
      const { parents: theirs = [], unsure = [] } = own ?? {}
      const sure = (ids: readonly string[] = []) => ids.filter((id) => !unsure.includes(id))
      same(sure(children), sure(own?.children))
      same(sure(parents), sure(theirs))
      const perhaps = new Set(own?.perhaps)
      if (job !== undefined && live(job)) same(sureOf(gone, perhaps), sureOf(own?.gone ?? [], perhaps))
      same(rest, job === undefined ? {} : { queue: job.queue, state: job.state, more: false })
      if (job?.state === 'blocked') same(onDead, job.onDead ?? 'cancel')
    }
  }

  async #list(queue: string, state: JobState, limit: number, filter: JobFilter | null = null): Promise<void> {
    const listed: ListedRecord[] = []
    let after: string | null = null
    do {
      const page: Listed = await this.#store.operations.list({
        queue,
        state,
        limit,
        ...(after === null ? {} : { after }),
        ...(filter === null ? {} : { filter }),
      })
      assert.ok(page.jobs.length <= limit, 'a page keeps to its limit')
      listed.push(...page.jobs)
      assert.ok(listed.length <= IDS.length, 'paging comes to an end')
      after = page.next
    } while (after !== null)
    const expected = this.#model.list(queue, state).filter((job) => filter === null || passes(job, filter))
    // Jobs that are due, lose their lease or finished in the same millisecond may stand in any order.
    const times = new Map(expected.map((job) => [job.id, timeOf(state, job)]))
    const order = ({ id }: JobRecord) => times.get(id) ?? id
    same(listed.map(order), expected.map(order))
    const ids = listed.map(({ id }) => id).sort()
    same(ids, expected.map(({ id }) => id).sort())
    same(
      listed.map(({ cursor: _, ...record }) => withoutWords(record)),
      this.#model.find(listed.map(({ id }) => id)).map(withoutWords),
    )
  }

  async #groups(queue: string, limit: number): Promise<void> {
    const listed: GroupRecord[] = []
    for (;;) {
      const after = listed.at(-1)?.group
      const page =
        (await this.#store.operations.groups?.({ queue, limit, ...(after === undefined ? {} : { after }) })) ?? []
      listed.push(...page)
      if (page.length < limit) break
    }
    same(listed, this.#model.groups(queue))
  }

  async #stats(minutes: number): Promise<void> {
    const stats = await this.#store.operations.stats({ minutes })
    const expected = this.#model.stats(minutes)
    for (const { queue, capacity } of expected) {
      const answer = stats.find((one) => one.queue === queue)
      // Never configured: the store has its own.
      if (answer !== undefined && capacity === undefined) Object.assign(answer, { capacity })
    }
    same(sorted(stats), sorted(expected))
    for (const queue of this.#model.queues.keys()) await this.#settings(queue)
  }

  async #settings(queue: string): Promise<void> {
    const expected = this.#model.settings(queue)
    const values = (await this.#store.operations.settings({ queue }))?.values
    same(expected.capacity === undefined ? { ...values, capacity: undefined } : values, expected)
  }

  async #compareAll(): Promise<void> {
    await this.#find(IDS)
    await this.#relatives(IDS)
    for (const queue of this.#model.queues.keys()) {
      for (const state of JOB_STATES) await this.#list(queue, state, 2)
      await this.#groups(queue, 2)
    }
    await this.#stats(60)
  }
}

/** What jobs of the state are ordered by, where there can be ties. */
function timeOf(state: JobState, { id, dueAt, leaseUntil, finishedAt, follows }: ModelJob): number | string | null {
  if (state === 'waiting') return id
  if (follows) return 'none'
  return state === 'scheduled' ? dueAt : state === 'running' ? leaseUntil : finishedAt
}

/** The assertion's own message stops at [Object]. */
function same(actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return
  assert.equal(inspect(actual, WHOLE), inspect(expected, WHOLE))
  assert.deepEqual(actual, expected)
}

const WHOLE = { depth: Infinity, maxArrayLength: null, maxStringLength: 1000, sorted: true }

/** The words of LeaseLost and ParentFailed are each store's own, and so are fences once jobs were removed: claims show them. */
function withoutWords(record: JobRecord | null): JobRecord | null {
  if (record === null) return null
  const { error } = record
  const isTheirs = error?.code === 'LeaseLost' || error?.code === 'ParentFailed'
  return { ...record, fence: 0, error: isTheirs ? { code: error.code, name: '', message: '' } : error }
}

function sorted(stats: readonly (QueueStats | ModelStats)[]) {
  return stats
    .map((one) => {
      // The model has neither: the vectors have them.
      const { histograms, overrides: _, lastClaim: __, ...rest } = { overrides: {}, lastClaim: null, ...one }
      const ordered = histograms.toSorted((a, b) => a.priority - b.priority || a.metric.localeCompare(b.metric))
      return { ...rest, histograms: ordered }
    })
    .sort((a, b) => a.queue.localeCompare(b.queue))
}

const sureOf = (ids: readonly string[], perhaps: ReadonlySet<string>) => ids.filter((id) => !perhaps.has(id))
