/** The store's operations as calls of the SQL functions in `contract/postgres/`. Rings the bells of this process; see `doorbell.ts`. */
import {
  type Claimed,
  type ClaimRequest,
  type Completion,
  type ExtendOutcome,
  type Extension,
  type FailOutcome,
  type Failure,
  type FinalState,
  type HistogramSlice,
  type Hold,
  type HoldOutcome,
  type JobRecord,
  type ListRequest,
  type NewJob,
  type PushOutcome,
  type QueueSettings,
  type QueueStats,
  type Swept,
  setsNothing,
} from '../../store.ts'
import { IdleQueues } from '../idle.ts'
import type { Caller } from './caller.ts'
import type { Row } from './database.ts'
import type { Doorbell } from './doorbell.ts'
import { Finder } from './finder.ts'
import { Pusher } from './pusher.ts'
import { integer, integersOrNull, list, recordFrom, statsFrom, sweptFrom, text, texts, textsOrNull } from './records.ts'
import {
  type Alike,
  alike,
  claimedFrom,
  jobsText,
  outcomeFrom,
  plainArray,
  resultsText,
  tagged,
  textArray,
} from './wire.ts'

/** Ms between looks for idle queues, and how many are looked at. */
const LOOK_EVERY = 60_000
const MOST_IDLE = 10_000

const answerOf = (rows: readonly Row[]): unknown => rows[0]?.answer

export class Operations {
  readonly #caller: Caller
  readonly #doorbell: Doorbell
  readonly #finder: Finder
  readonly #pusher = new Pusher((jobs) => this.#pushAll(jobs))
  readonly #idle = new IdleQueues()
  /** When idle queues were last looked for, by the store's clock. */
  #looked = Number.NEGATIVE_INFINITY
  /** Settles when all that was recorded here is written. */
  #recorded: Promise<unknown> = Promise.resolve()

  constructor(caller: Caller, doorbell: Doorbell) {
    this.#caller = caller
    this.#doorbell = doorbell
    this.#finder = new Finder(caller)
  }

  async configure(settings: QueueSettings): Promise<void> {
    if (setsNothing(settings)) return
    const { queue, capacity, timeout, backoff } = settings
    const { keepDone = null, keepDead = null, paused = null, attempts = null, lease = null } = settings
    await this.#caller.rows('configure($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)', [
      ...[queue, capacity !== undefined, capacity ?? null, keepDone, keepDead, paused, attempts],
      ...[timeout !== undefined, timeout ?? null, lease],
      ...[backoff?.base, backoff?.factor, backoff?.max, backoff?.jitter],
    ])
    // Either may be what someone waits for: a raised capacity, or the end of a pause.
    if (capacity !== undefined) {
      this.#doorbell.bells.ring('room', queue)
      this.#doorbell.tell('room', queue)
    }
    if (paused === false) this.#doorbell.bells.ring('work', queue)
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#caller.assertOpen()
    if (jobs.length === 0) return []
    this.#doorbell.stir()
    // Accepted: a store that closes lets it go first.
    return this.#caller.track(this.#pusher.add(jobs))
  }

  async #pushAll(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const same = alike(jobs)
    let repeated = false
    const again = () => {
      repeated = true
    }
    const outcomes = same === undefined ? await this.#pushJobs(jobs, again) : await this.#pushList(jobs, same, again)
    // Its own job, which the first of several tries has stored: only the answer was lost.
    if (repeated) {
      for (const [at, outcome] of outcomes.entries()) {
        if (outcome.status === 'existing' && outcome.id === jobs[at]?.id) outcome.status = 'pushed'
      }
    }
    let rung: string | undefined
    for (const [at, { queue }] of jobs.entries()) {
      if (queue === rung || outcomes[at]?.status !== 'pushed') continue
      this.#doorbell.bells.ring('work', queue)
      rung = queue
    }
    return outcomes
  }

  async #pushList(jobs: readonly NewJob[], list: Alike, again: () => void): Promise<PushOutcome[]> {
    const { queue, priority, delay, runAt, group, attempts, timeout, trace } = list.first
    const call = 'push_list($1, $2, $3, $4::smallint, $5, $6, $7, $8, $9, $10, true, $11, $12, $13) as answer'
    const common = [
      queue,
      list.ids,
      list.data,
      priority,
      delay,
      runAt,
      group,
      attempts,
      timeout,
      trace,
      this.#caller.now(),
    ]
    const repeated = () => {
      again()
      return [...common, false, list.fresh]
    }
    const outcomes = textsOrNull(
      answerOf(await this.#caller.repeatable(call, [...common, list.fresh, false], repeated)),
    )
    return outcomes === null ? jobs.map(({ id }) => ({ status: 'pushed', id })) : outcomes.map(outcomeFrom)
  }

  async #pushJobs(jobs: readonly NewJob[], again: () => void): Promise<PushOutcome[]> {
    const call = 'push_jobs($1, true, $2, $3) as answer'
    const now = this.#caller.now()
    const repeated = () => {
      again()
      return [jobsText(jobs.map((job) => ({ ...job, fresh: false }))), now, jobs.some(({ fresh }) => fresh === true)]
    }
    return texts(answerOf(await this.#caller.repeatable(call, [jobsText(jobs), now, false], repeated))).map(outcomeFrom)
  }

  async claim({ queue, worker, limit, lease }: ClaimRequest): Promise<Claimed> {
    this.#doorbell.concern(queue)
    const call = 'claim($1, $2, $3, $4, $5, $6)'
    const { listener } = this.#doorbell
    const [row] = await this.#caller.rows(call, [queue, worker, limit, lease, listener, this.#caller.now()])
    const jobs = row?.jobs === null ? [] : list(JSON.parse(text(row?.jobs))).map(claimedFrom)
    if (jobs.length > 0 && row?.bounded === true) {
      this.#doorbell.bells.ring('room', queue)
      this.#doorbell.tell('room', queue)
    }
    this.#doorbell.claimed(queue, jobs.length > 0, row?.asleep === true)
    return {
      now: integer(row?.at),
      lease: integer(row?.holds),
      jobs,
      retryAfter: row?.retry_after === null ? null : integer(row?.retry_after),
    }
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    const rows = await this.#caller.rows('complete($1, $2, $3, $4, $5) as answer', [
      ...held(queue, completions),
      resultsText(completions),
      this.#caller.now(),
    ])
    const outcomes = holdOutcomes(completions, integersOrNull(answerOf(rows)))
    this.#finished(
      queue,
      completions.filter((_, at) => outcomes[at] === 'ok').map(({ id }) => id),
    )
    return outcomes
  }

  async fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    const sent = failures.map(({ id, fence, error, delay }) => ({
      id,
      fence: storedFence(fence),
      error: JSON.stringify(error),
      delay,
    }))
    const rows = await this.#caller.rows('fail($1, $2, $3) as answer', [
      queue,
      JSON.stringify(sent),
      this.#caller.now(),
    ])
    const outcomes = texts(answerOf(rows)).map(
      (outcome): FailOutcome => (outcome === 'retry' || outcome === 'dead' ? outcome : 'stale'),
    )
    if (failures.some(({ delay }, at) => (delay === 0 || delay === 'backoff') && outcomes[at] === 'retry'))
      this.#doorbell.bells.ring('work', queue)
    this.#finished(
      queue,
      failures.filter((_, at) => outcomes[at] === 'dead').map(({ id }) => id),
    )
    return outcomes
  }

  async release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    const rows = await this.#caller.rows('release($1, $2, $3) as answer', held(queue, holds))
    const outcomes = holdOutcomes(holds, integersOrNull(answerOf(rows)))
    if (outcomes.includes('ok')) this.#doorbell.bells.ring('work', queue)
    return outcomes
  }

  async extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    const reports = extensions.map(({ progress }) => (progress === null ? null : tagged(progress)))
    const [, ids, fences] = held(queue, extensions)
    const rows = await this.#caller.rows('extend($1, $2, $3, $4, $5, $6) as answer', [
      queue,
      lease,
      ids,
      fences,
      textArray(reports),
      this.#caller.now(),
    ])
    return texts(answerOf(rows)).map(
      (outcome): ExtendOutcome => (outcome === 'ok' || outcome === 'cancelled' ? outcome : 'stale'),
    )
  }

  async cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    this.#doorbell.stir()
    const call = 'cancel($1, $2) as answer'
    const rows = await this.#caller.rows(call, [plainArray(ids), this.#caller.now()])
    return texts(answerOf(rows)).map((answer, at) => {
      if (answer === '') return null
      const [queue = '', was = ''] = answer.split(' ')
      if (was === 'done' || was === 'dead' || was === 'cancelled') return was
      const kind = was === 'running' ? 'cancelled' : 'room'
      this.#doorbell.bells.ring('cancelled', queue, ids[at])
      this.#finished(queue, [ids[at] ?? ''])
      if (kind === 'room') this.#doorbell.bells.ring('room', queue)
      this.#doorbell.tell(kind, queue)
      return 'cancelled'
    })
  }

  async sweep(limit: number): Promise<Swept> {
    const rows = await this.#caller.rows('sweep($1, $2) as answer', [limit, this.#caller.now()])
    const { now, work, ...answer } = sweptFrom(answerOf(rows))
    for (const queue of work) this.#doorbell.bells.ring('work', queue)
    for (const { id, queue, state } of answer.lost) if (state === 'dead') this.#finished(queue, [id])
    // What was lost is told by the answer alone; idle queues can wait.
    await this.#removeIdle(now).catch(() => undefined)
    return answer
  }

  async #removeIdle(now: number): Promise<void> {
    if (Math.abs(now - this.#looked) < LOOK_EVERY) return
    this.#looked = now
    const idle = await this.#caller.rows('idle_queues($1) as answer', [MOST_IDLE])
    const names = this.#idle.found(
      idle.map(({ answer }) => text(answer)),
      now,
    )
    if (names.length > 0) await this.#caller.rows('remove_queues($1)', [textArray(names)])
  }

  async find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    this.#doorbell.stir()
    return this.#finder.find(ids)
  }

  async stats({ queue = null, minutes = 0 }: { queue?: string | null; minutes?: number }): Promise<QueueStats[]> {
    await this.#recorded
    const call = 'stats($1, $2, $3) as answer'
    const rows = await this.#caller.rows(call, [queue, minutes, this.#caller.now()])
    return rows.map(({ answer }) => statsFrom(answer))
  }

  async record(slices: readonly HistogramSlice[]): Promise<void> {
    const sent = slices.flatMap(({ queue, priority, metric, buckets }) =>
      Object.entries(buckets).map(([bucket, count]) => ({ queue, priority, metric, bucket: Number(bucket), count })),
    )
    // Whoever reads the figures right after sees these: calls on several connections overtake each other.
    const recorded = this.#caller.rows('record($1, $2)', [JSON.stringify(sent), this.#caller.now()])
    this.#recorded = Promise.allSettled([this.#recorded, recorded])
    await recorded
  }

  async list({
    queue,
    state,
    limit,
    after = null,
  }: { after?: string | null } & Omit<ListRequest, 'after'>): Promise<JobRecord[]> {
    const call = 'list($1, $2, $3, $4) as answer'
    const rows = await this.#caller.rows(call, [queue, state, limit, after])
    return rows.map(({ answer }) => recordFrom(answer))
  }

  async requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): Promise<number> {
    const given = 'ids' in request ? [plainArray(request.ids), null, null] : [null, request.queue, request.limit]
    const call = 'requeue($1, $2, $3, $4) as answer'
    const queues = texts(answerOf(await this.#caller.rows(call, [...given, this.#caller.now()])))
    for (const queue of queues) this.#doorbell.bells.ring('work', queue)
    return queues.length
  }

  #finished(queue: string, ids: readonly string[]): void {
    if (ids.length === 0) return
    for (const id of ids) this.#doorbell.bells.ring('finished', queue, id)
    this.#doorbell.tell('finished', queue)
  }
}

/** PostgreSQL's greatest integer. No claim has a fence above it, and none has 0. */
const MOST_FENCE = 2_147_483_647
const storedFence = (fence: number): number => (fence > MOST_FENCE ? 0 : fence)

/** Queue, ids and fences. */
function held(queue: string, holds: readonly Hold[]): [string, string, string] {
  return [queue, plainArray(holds.map(({ id }) => id)), plainArray(holds.map(({ fence }) => storedFence(fence)))]
}

/** @param done which ones were, counted from 1; null: all */
function holdOutcomes(holds: readonly Hold[], done: readonly number[] | null): HoldOutcome[] {
  if (done === null) return holds.map(() => 'ok')
  const outcomes = holds.map((): HoldOutcome => 'stale')
  for (const nth of done) outcomes[nth - 1] = 'ok'
  return outcomes
}
