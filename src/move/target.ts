/** Where jobs are moved to: it stores them as they were, and says of each what became of it. */
import type { Store } from '../store.ts'
import { type ErrorCode, isMillpondError, MillpondError } from '../values/errors.ts'
import type { JobRecord, NewJob, PushOutcome } from '../values/records.ts'

/**
 * `moved`; `repeated`: the target had the job, of an earlier run. Else it stays at the source: `full`, or the code of the error.
 * `KeyTaken`: another live job at the target has its key.
 */
export type Fate = 'moved' | 'repeated' | LeftReason
export type LeftReason = 'KeyTaken' | 'full' | ErrorCode

/** After these, another batch would fail as well. */
const OF_THE_STORE: readonly ErrorCode[] = [
  'StoreUnavailable',
  'StoreBusy',
  'StoreFull',
  'StoreCorrupt',
  'StoreVersion',
  'Closed',
]

export class Target {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** @throws the errors of the store that do not come from one of the jobs */
  async take(records: readonly JobRecord[]): Promise<Fate[]> {
    try {
      return await (this.#store.capabilities.restore ? this.#restore(records) : this.#push(records))
    } catch (error) {
      const code = isMillpondError(error) ? error.code : undefined
      if (code === undefined || OF_THE_STORE.includes(code)) throw error
      if (records.length === 1) return [code]
      // One job must not keep the others: halves, down to the one that is refused.
      const half = records.length >> 1
      return [...(await this.take(records.slice(0, half))), ...(await this.take(records.slice(half)))]
    }
  }

  async #restore(records: readonly JobRecord[]): Promise<Fate[]> {
    const outcomes = await this.#store.operations.restore({ records })
    const fates = outcomes.map((outcome): Fate => (outcome === 'restored' ? 'moved' : 'repeated'))
    const doubtful = records.flatMap((record, index) =>
      fates[index] === 'repeated' && record.key !== null ? index : [],
    )
    if (doubtful.length === 0 || !this.#store.capabilities.find) return fates
    const ids = doubtful.flatMap((index) => records[index]?.id ?? [])
    const found = await this.#store.operations.find({ ids })
    doubtful.forEach((index, at) => {
      if (found[at] === null) fates[index] = 'KeyTaken'
    })
    return fates
  }

  /** A store that cannot restore takes what can still be done as new jobs. */
  async #push(records: readonly JobRecord[]): Promise<Fate[]> {
    const fits = records.map((record) => this.#canPush(record))
    const fitting = records.filter((_, index) => fits[index])
    const outcomes = fitting.length === 0 ? [] : await this.#store.operations.push({ jobs: fitting.map(asNew) })
    let at = 0
    return records.map((record, index) => {
      if (!fits[index]) return 'NotSupported'
      const outcome = outcomes[at++]
      return outcome === undefined ? 'StoreFailed' : fateOfPush(outcome, record)
    })
  }

  #canPush({ state, priority, key }: JobRecord): boolean {
    const { delays, priorities, keys } = this.#store.capabilities
    return (
      (state === 'waiting' || (state === 'scheduled' && delays)) &&
      (priorities || priority === 4) &&
      (keys || key === null)
    )
  }
}

function fateOfPush({ status, id, error }: PushOutcome, record: JobRecord): Fate {
  if (status === 'pushed') return 'moved'
  if (status === 'existing') return id === record.id ? 'repeated' : 'KeyTaken'
  if (status === 'full') return 'full'
  throw error ?? new MillpondError('StoreFailed', 'the target has not stored a job, and does not say why')
}

function asNew({
  id,
  queue,
  priority,
  dueAt,
  state,
  key,
  group,
  cost,
  attempts,
  attempt,
  timeout,
  trace,
  data,
}: JobRecord): NewJob {
  const runAt = state === 'scheduled' ? dueAt : null
  // What is left of its attempts.
  const left = Math.max(1, attempts - attempt)
  return { id, queue, priority, delay: 0, runAt, key, group, cost, attempts: left, timeout, trace, data }
}
