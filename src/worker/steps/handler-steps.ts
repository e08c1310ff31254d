/** The steps of one handler call: contract/steps.md, "How a worker makes steps". */

import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TransactionQuery } from '../../store.ts'
import { encode } from '../../values/encoding/encoding.ts'
import type { Stored } from '../../values/encoding/stored.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { Encoded, Entry, NewEntry } from '../../values/jobs/records.ts'
import { checkStepName, signalName } from '../../values/jobs/step-names.ts'
import { delayAfter } from '../../values/settings/backoff.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { milliseconds } from '../../values/time/duration.ts'
import { signalOf } from '../stop-signal.ts'
import { childId } from './child-id.ts'
import { bodyOf, type EntryMeta, entry, errorBody, keptError, metaOf, outcomeOf, type StepKind } from './entries.ts'
import type { ChildRecord, StepCalls, StepTransaction } from './journal-calls.ts'
import { ParkingLot, type StepsHost, type Wait } from './parking.ts'
import type { ChildQueue, RunOptions, StepOptions, StepRun, Steps, WaitOptions } from './step-context.ts'
import { checkRunOptions, checkStepOptions, checkWaitOptions } from './step-options.ts'

const { body: MAX_BODY, shortSleep: SHORT_SLEEP, shortRetry: SHORT_RETRY } = DEFAULTS.steps
const FINAL: ReadonlySet<string> = new Set(['done', 'dead', 'cancelled'])

export class HandlerSteps implements Steps {
  readonly #host: StepsHost
  readonly #calls: StepCalls
  readonly #lot: ParkingLot
  readonly #entries = new Map<string, NewEntry>()
  /** In the order in which they came. */
  readonly #signals: Entry[] = []
  readonly #taken = new Set<string>()
  /** How often each name was used. */
  readonly #uses = new Map<string, number>()
  /** Steps that have failed, and of which the store was not told. */
  readonly #failures = new Map<string, NewEntry>()
  /** Set inside the function of a step. */
  readonly #inside = new AsyncLocalStorage<string>()
  #read: Promise<void> | undefined
  #clock = (): number => 0
  #signal: AbortSignal | undefined

  constructor(host: StepsHost, calls: StepCalls) {
    this.#host = host
    this.#calls = calls
    this.#lot = new ParkingLot(host, () => ({
      signals: this.#signals.length,
      entries: [...this.#failures.values()],
    }))
  }

  step<Result>(name: string, run: StepRun<Result>, options?: StepOptions): Promise<Stored<Result>> {
    return this.#busy(name, 'step', async (key) => {
      const given = checkStepOptions(options, key)
      if (typeof run !== 'function')
        throw new MillpondError('InvalidOption', `step ${key}: give the function that it runs`)
      const kept = this.#entries.get(`=${key}`)
      // The body was encoded from what the function returned.
      if (kept !== undefined) return { value: outcomeOf(kept) as Stored<Result> }
      return this.#try(key, run, given)
    })
  }

  sleep(name: string, duration: number | string): Promise<void> {
    return this.#busy(name, 'sleep', async (key) => {
      const ms = milliseconds(duration, `sleep ${key}`)
      const kept = this.#entries.get(`=${key}`)
      const until = kept === undefined ? this.#now + ms : (metaOf(kept)?.until ?? 0)
      const left = until - this.#now
      if (left < SHORT_SLEEP) {
        if (left > 0) await this.#pause(left)
        return { value: undefined }
      }
      return {
        wait: { kind: 'sleep', key, until, entry: kept ? undefined : this.#entry(`=${key}`, 'sleep', { until }) },
      }
    })
  }

  waitFor<Data>(name: string, options?: WaitOptions): Promise<Data> {
    return this.#busy(name, 'wait', async (key) => {
      const { timeout, ask, answer } = checkWaitOptions(options, key)
      const ended = this.#entries.get(`+${key}`)
      if (ended !== undefined) return { value: this.#signalled(ended) as Data }
      const signal = this.#signals.find((one) => signalName(one.name) === name && !this.#taken.has(one.name))
      if (signal !== undefined) {
        this.#taken.add(signal.name)
        await this.#write(this.#entry(`+${key}`, 'wait', { signal: signal.name }))
        return { value: bodyOf(signal) as Data }
      }
      const begun = this.#entries.get(`=${key}`)
      const later = timeout === undefined ? null : this.#now + milliseconds(timeout, 'timeout')
      const until = begun === undefined ? later : (metaOf(begun)?.until ?? null)
      if (until !== null && until <= this.#now) {
        const error = new MillpondError('SignalTimeout', `the signal ${name} did not come in time`, { id: this.#id })
        await this.#write(this.#entry(`+${key}`, 'wait', { failed: true }, errorBody(keptError(error))))
        throw error
      }
      const question = ask === undefined ? null : encode({ ask, ...(answer && { answer }) }, 'the question', MAX_BODY)
      const first = begun ? undefined : this.#entry(`=${key}`, 'wait', { until }, question)
      return { wait: { kind: 'wait', key, until, entry: first } }
    })
  }

  run<Data, Result>(name: string, queue: ChildQueue<Data>, data: Data, options?: RunOptions): Promise<Result> {
    return this.#busy(name, 'run', async (key) => {
      const given = checkRunOptions(options, key)
      const ended = this.#entries.get(`+${key}`)
      if (ended !== undefined) return { value: outcomeOf(ended) as Result }
      const child = childId(this.#id, key)
      const begun = this.#entries.get(`=${key}`)
      const isNew = begun === undefined && this.#entries.size === 0 && this.#host.claimed.attempt === 1
      const found = isNew ? null : await this.#calls.find(child)
      if (found === null && begun === undefined) await queue.push(data, { ...given, id: child })
      if (found === null ? begun !== undefined : FINAL.has(found.state)) {
        return { value: (await this.#childEnded(key, child, found)) as Result }
      }
      const first = begun ? undefined : this.#entry(`=${key}`, 'run', { child })
      return { wait: { kind: 'run', key, until: null, child, entry: first } }
    })
  }

  once(name: string): string {
    return `${this.#id}/${checkStepName(name)}`
  }

  get #id(): string {
    return this.#host.claimed.id
  }

  /** Numbers the name at once, reads what was kept, and does the work, which ends with a value or a wait. */
  #busy<T>(name: string, kind: StepKind, work: (key: string) => Promise<Done<T>>): Promise<T> {
    const key = this.#keyOf(name)
    const outer = this.#inside.getStore()
    const inside = () => {
      const what = `${kind} ${key} is inside step ${outer}, whose result it is part of: call it outside`
      return new MillpondError('InvalidOption', what, { id: this.#id })
    }
    if (outer !== undefined) return Promise.reject(inside())
    const ended = this.#lot
      .busy(async () => {
        if (this.#host.stopped !== undefined) throw this.#host.stopped
        this.#read ??= this.#readAll()
        await this.#read
        this.#assertKind(key, kind)
        return work(key)
      })
      .then((done) => ('wait' in done ? this.#lot.wait(done.wait) : done.value))
    // A step that nobody waits for must not end the process.
    ended.catch(() => {})
    return ended
  }

  /** @throws InvalidOption */
  #keyOf(name: unknown): string {
    const own = checkStepName(name)
    const uses = (this.#uses.get(own) ?? 0) + 1
    this.#uses.set(own, uses)
    return uses === 1 ? own : `${own}#${uses}`
  }

  async #readAll(): Promise<void> {
    const { entries, now } = await this.#calls.read()
    this.#clock = now
    for (const each of entries) {
      if (signalName(each.name) === undefined) this.#entries.set(each.name, each)
      else this.#signals.push(each)
      const { signal } = metaOf(each) ?? {}
      if (signal !== undefined) this.#taken.add(signal)
    }
  }

  /** The store's time, in milliseconds since 1970, once the journal was read. */
  get #now(): number {
    return Math.round(this.#clock())
  }

  #assertKind(key: string, kind: StepKind): void {
    const kept = this.#entries.get(`=${key}`) ?? this.#entries.get(`+${key}`)
    const { kind: was } = (kept && metaOf(kept)) ?? {}
    if (kept === undefined || was === kind) return
    const message = `${key} was a ${was ?? 'step of another program'} in an earlier attempt of this job, and is a ${kind} now`
    throw new MillpondError('StepMismatch', `${message}; give what has changed a new name`, { id: this.#id })
  }

  async #try<Result>(
    key: string,
    run: StepRun<Result>,
    { attempts, policy, timeout, transaction }: ReturnType<typeof checkStepOptions>,
  ): Promise<Done<Stored<Result>>> {
    let failures = 0
    while (this.#entries.has(retryEntry(key, failures + 1))) failures++
    const last = this.#entries.get(retryEntry(key, failures))
    const left = ((last && metaOf(last)?.until) ?? 0) - this.#now
    if (left > SHORT_RETRY) return { wait: { kind: 'step', key, until: left + this.#now } }
    if (left > 0) await this.#pause(left)
    for (;;) {
      const from = performance.now()
      const own = transaction ? this.#calls.begin() : undefined
      let value: Result
      try {
        // Which of the two it takes goes by the option.
        value = await this.#call(key, own === undefined ? (run as Plain<Result>) : within(own.query, run), timeout)
      } catch (error) {
        await own?.rollback().catch(() => {})
        if (this.#host.stopped !== undefined) throw this.#host.stopped
        const took = Math.round(performance.now() - from)
        if (++failures >= attempts) {
          const failed = errorBody(keptError(error))
          this.#failures.set(key, this.#entry(`=${key}`, 'step', { took, failed: true }, failed))
          throw error
        }
        const delay = delayAfter(policy, failures, Math.random())
        if (delay > SHORT_RETRY) {
          const until = this.#now + delay
          const entry = this.#entry(retryEntry(key, failures), 'step', { until })
          return { wait: { kind: 'step', key, until, entry } }
        }
        await this.#pause(delay)
        continue
      }
      const took = Math.round(performance.now() - from)
      let body: Encoded | null
      try {
        body = value === undefined ? null : encode(value, `the result of step ${key}`, MAX_BODY)
      } catch (error) {
        await own?.rollback().catch(() => {})
        throw error
      }
      await this.#write(this.#entry(`=${key}`, 'step', { took }, body), own)
      return { value: bodyOf({ body }) as Stored<Result> }
    }
  }

  /** Calls the function of a step, with a signal that is aborted when its time or the attempt is over. */
  async #call<Result>(
    key: string,
    run: (signal: AbortSignal) => Result | Promise<Result>,
    timeout: number | undefined,
  ): Promise<Result> {
    if (timeout === undefined) return this.#inside.run(key, run, this.#stopSignal)
    const controller = new AbortController()
    const message = `step ${key} ran longer than its timeout of ${timeout} ms`
    const late = new Promise<never>((_, reject) => {
      controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
    })
    const timer = setTimeout(() => controller.abort(new MillpondError('TimedOut', message, { id: this.#id })), timeout)
    try {
      const signal = AbortSignal.any([this.#stopSignal, controller.signal])
      return await Promise.race([this.#inside.run(key, run, signal), late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** @throws why the attempt is over, if that comes before */
  async #pause(ms: number): Promise<void> {
    try {
      await sleep(ms, undefined, { signal: this.#stopSignal })
    } catch (error) {
      throw this.#host.stopped ?? error
    }
  }

  get #stopSignal(): AbortSignal {
    this.#signal ??= signalOf(this.#host)
    return this.#signal
  }

  async #childEnded(key: string, child: string, record: ChildRecord | null): Promise<unknown> {
    if (record?.state === 'done') {
      await this.#write(this.#entry(`+${key}`, 'run', { child }, record.result))
      return bodyOf({ body: record.result })
    }
    const error = childError(key, child, record)
    await this.#write(this.#entry(`+${key}`, 'run', { child, failed: true }, errorBody(keptError(error))))
    throw error
  }

  #signalled(ended: NewEntry): unknown {
    const name = metaOf(ended)?.signal
    const signal = name === undefined ? undefined : this.#signals.find((one) => one.name === name)
    return signal === undefined ? outcomeOf(ended) : bodyOf(signal)
  }

  #entry(name: string, kind: StepKind, meta: Partial<EntryMeta>, body: Encoded | null = null): NewEntry {
    return entry(name, { kind, attempt: this.#host.claimed.attempt, at: this.#now, ...meta }, body)
  }

  /** What failed before goes along. */
  async #write(own: NewEntry, transaction?: StepTransaction): Promise<void> {
    const failures = [...this.#failures]
    const entries = [...failures.map(([, failed]) => failed), own]
    await (transaction === undefined ? this.#calls.write(entries) : transaction.commit(entries))
    for (const [key] of failures) this.#failures.delete(key)
    this.#entries.set(own.name, own)
  }
}

type Plain<Result> = (signal: AbortSignal) => Result | Promise<Result>

const within =
  <Result>(query: TransactionQuery, run: StepRun<Result>): Plain<Result> =>
  (signal) =>
    (run as (tx: TransactionQuery, signal: AbortSignal) => Result | Promise<Result>)(query, signal)

/** Of a step that has failed so often, and is tried again later. Names hold no line feeds. */
const retryEntry = (key: string, failures: number): string => `+${key}\n${failures}`

function childError(key: string, child: string, record: ChildRecord | null): MillpondError {
  const what = `child ${key}, job ${child},`
  if (record === null) {
    return new MillpondError('JobUnknown', `${what} has ended, and its result is kept no longer`, { id: child })
  }
  const { code, name, message } = record.error ?? { code: '', name: '', message: '' }
  if (record.state === 'cancelled') return new MillpondError('JobCancelled', `${what} was cancelled`, { id: child })
  return new MillpondError('JobFailed', `${what} is dead: ${name}: ${message} (${code})`, { id: child })
}

/** What a step came to, or what it waits for. */
type Done<T> = { value: T } | { wait: Wait }
