import { splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import { assertOpened, encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { newId } from '../values/jobs/ids.ts'
import { needs } from '../values/operations/capabilities.ts'
import { versionOf } from '../values/schedules/firing.ts'
import type { Declaration, DeclareOutcome, Missed, ScheduleRecord } from '../values/schedules/records.ts'
import { timesOf } from '../values/schedules/times.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { checkScheduleName } from '../values/settings/names.ts'
import type { PondInternals } from './internals.ts'
import type { Pushed } from './push/options.ts'
import { producerIn, type QueueOf } from './push/push-all.ts'
import { checkLine, type ScheduleOptions, scheduleSettings } from './schedule-options.ts'
import { type Preview, type PreviewOptions, previewOf } from './schedule-preview.ts'

/** A schedule, as the store has it. */
export interface ScheduleInfo {
  name: string
  when: string
  tz: string
  missed: Missed
  /** Milliseconds. */
  jitter: number
  from: Date | null
  until: Date | null
  /** Of the jobs it pushes. */
  queue: string
  paused: boolean
  /** When it fires next; null: never again, it is paused, or no sweep has planned it yet. */
  nextAt: Date | null
  /** When it last pushed jobs; null: it has not yet. */
  lastAt: Date | null
  /** When a declaration last changed it. */
  changedAt: Date
  /** false: no process has declared it for a minute and a half. It goes on firing until it is removed. */
  declared: boolean
}

/** What is unset stays. */
interface ScheduleChange {
  when?: string | undefined
  tz?: string | undefined
  data?: unknown
}

type Declared<Data> = [
  name: unknown,
  when: unknown,
  queue: QueueOf<Data>,
  data: Data,
  options: ScheduleOptions | undefined,
]

const { declare: DECLARE_EVERY, data: MOST_DATA } = DEFAULTS.schedule
const PAGE = 100

/** The schedules of the store, for people and tools. `pond.schedule` makes them. */
export class Schedules {
  readonly #pond: PondInternals
  /** What this process has declared. */
  readonly #own = new Map<string, Declaration>()
  #timer: NodeJS.Timeout | undefined

  /** @internal */
  constructor(pond: PondInternals) {
    this.#pond = pond
  }

  /** @internal Tells from then on that this process declares it. */
  async declare<Data>(...given: Declared<Data>): Promise<void> {
    const { declaration } = await this.declareOnce(...given)
    this.#own.set(declaration.name, { ...declaration, again: true })
    this.#timer ??= setInterval(() => void this.#declareAgain(), DECLARE_EVERY).unref()
  }

  /** @internal */
  async declareOnce<Data>(
    ...[given, when, queue, data, options]: Declared<Data>
  ): Promise<{ declaration: Declaration; outcome: DeclareOutcome | undefined }> {
    const store = this.#store('schedule')
    const name = checkScheduleName(given)
    const producer = producerIn(this.#pond, queue, 'pond.schedule')
    const { timing, paused, job: jobOptions } = scheduleSettings(name, when, options)
    await producer.told()
    const {
      priority,
      key,
      group,
      cost = 1,
      attempts,
      timeout,
      data: encoded,
    } = await producer.prepare(data, jobOptions)
    const size = Buffer.byteLength(encoded.body)
    if (size > MOST_DATA) {
      throw new MillpondError('PayloadTooLarge', `the data of a schedule may have ${MOST_DATA} bytes; got ${size}`)
    }
    const job = { queue: queue.name, priority, key, group, cost, attempts, timeout, data: encoded }
    const declaration = { ...timing, name, version: versionOf(timing, job), paused, job, again: false }
    const [outcome] = await store.operations.declare({ schedules: [declaration] })
    this.#pond.due(0)
    return { declaration, outcome }
  }

  /**
   * @internal Changes what a schedule is, as one who declares it does: a program that declares it otherwise is heard again once
   * this has not been declared for 90 s.
   * @returns undefined: there is no such schedule @throws InvalidOption, PayloadTooLarge, PayloadNotEncodable
   */
  async change(name: string, change: ScheduleChange): Promise<{ outcome: DeclareOutcome | undefined } | undefined> {
    const store = this.#store('schedules.change')
    const record = await this.find(name)
    if (record === undefined) return undefined
    const { missed, jitter, from, until, paused } = record
    const { when = record.when, tz = record.tz } = change
    const timing = { when: checkLine(when), tz, missed, jitter, from, until }
    timesOf(timing)
    const data = change.data === undefined ? record.job.data : encode(change.data, 'the data of a schedule', MOST_DATA)
    const job = { ...record.job, data }
    const declaration = { ...timing, name, version: versionOf(timing, job), paused, job, again: false }
    const [outcome] = await store.operations.declare({ schedules: [declaration] })
    this.#pond.due(0)
    return { outcome }
  }

  /** @internal As the store has it. */
  async find(name: string): Promise<ScheduleRecord | undefined> {
    const store = this.#store('schedules.find')
    return (await store.operations.schedules({ limit: 1, name: checkScheduleName(name) }))[0]
  }

  /** All schedules by name. @throws NotSupported (a store without `schedules`), Closed, `Store…` */
  async list(): Promise<ScheduleInfo[]> {
    const store = this.#store('schedules.list')
    const infos: ScheduleInfo[] = []
    for (let after: string | undefined; ; ) {
      const page = await store.operations.schedules({ limit: PAGE, ...(after !== undefined && { after }) })
      infos.push(...page.map(scheduleInfo))
      after = page.at(-1)?.name
      if (page.length < PAGE) return infos
    }
  }

  /**
   * Stops a schedule from firing until `resume`, in every process. The times in between are not missed.
   * @returns whether there is such a schedule
   * @throws InvalidName, NotSupported, Closed, `Store…`
   */
  async pause(name: string): Promise<boolean> {
    return this.#store('schedules.pause').operations.pauseSchedule({ name: checkScheduleName(name), paused: true })
  }

  /** @returns whether there is such a schedule @throws as `pause` */
  async resume(name: string): Promise<boolean> {
    const store = this.#store('schedules.resume')
    const isKnown = await store.operations.pauseSchedule({ name: checkScheduleName(name), paused: false })
    this.#pond.due(0)
    return isKnown
  }

  /** Code that declares it makes it again when it starts anew. @returns whether there was such a schedule @throws as `pause` */
  async remove(name: string): Promise<boolean> {
    const store = this.#store('schedules.remove')
    const checked = checkScheduleName(name)
    this.#own.delete(checked)
    return store.operations.removeSchedule({ name: checked })
  }

  /**
   * Pushes the schedule's job now, beside its times; paused or not.
   * @returns undefined: there is no such schedule
   * @throws QueueFull, PayloadSealed (this process has not the key of its data), and as `pause`
   */
  async run(name: string): Promise<Pushed | undefined> {
    const store = this.#store('schedules.run')
    const [record] = await store.operations.schedules({ limit: 1, name: checkScheduleName(name) })
    if (record === undefined) return undefined
    assertOpened(record.job.data, `data of schedule ${name}`)
    const job = { ...record.job, id: newId(), delay: 0, runAt: null, trace: null, fresh: true }
    const [answer] = this.#pond.pusher.pushMany([job])
    const [outcome] = (await answer) ?? []
    if (outcome?.status === 'pushed' || outcome?.status === 'existing') {
      this.#pond.pushed(job, outcome.id, outcome.status === 'existing')
      return { id: outcome.id, existing: outcome.status === 'existing' }
    }
    if (outcome?.status === 'failed') throw outcome.error
    throw new MillpondError('QueueFull', `queue ${job.queue} is full; run ${name} again later`, { queue: job.queue })
  }

  /**
   * What a line means, before it is used: its next times by this machine's clock, and words. Needs no store.
   * @throws InvalidOption
   */
  async preview(when: string, options: PreviewOptions = {}): Promise<Preview> {
    return previewOf(when, options)
  }

  /** @internal */
  close(): void {
    clearInterval(this.#timer)
    this.#own.clear()
  }

  /** @throws Closed, NotSupported */
  #store(what: string): Store {
    this.#pond.assertOpen()
    needs(this.#pond.store, 'schedules', what)
    return this.#pond.store
  }

  /** So that others see that the code that declares them still runs. */
  async #declareAgain(): Promise<void> {
    const own = [...this.#own.values()]
    const declare = (schedules: readonly Declaration[]) => this.#pond.store.operations.declare({ schedules })
    const errors = new Set<MillpondError>()
    for (let from = 0; from < own.length; from += PAGE) {
      const outcomes = await splitting(own.slice(from, from + PAGE), declare, 'declaring schedules again')
      for (const outcome of outcomes) if (outcome instanceof MillpondError) errors.add(outcome)
    }
    for (const error of errors) if (error.code !== 'Closed') this.#pond.events.trouble(error)
  }
}

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

export function scheduleInfo(record: ScheduleRecord): ScheduleInfo {
  const { name, when, tz, missed, jitter, paused, planned, job } = record
  return {
    ...{
      name,
      when,
      tz,
      missed,
      jitter,
      from: dateOf(record.from),
      until: dateOf(record.until),
      queue: job.queue,
      paused,
    },
    nextAt: planned && !paused ? dateOf(record.nextAt) : null,
    lastAt: dateOf(record.lastAt),
    changedAt: new Date(record.changedAt),
    declared: record.declared,
  }
}
