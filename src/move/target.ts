/** Where jobs are moved to: it stores them as they were, and says of each what became of it. */
import { splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import { type ErrorCode, MillpondError } from '../values/errors/errors.ts'
import type { JobRecord, NewJob, PushOutcome } from '../values/jobs/records.ts'
import type { RestoreOutcome } from '../values/operations/requests.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { placesOf } from './sources/graph.ts'

/** Jobs of a page. */
const BATCH = 1000
const MOST_PARENTS = DEFAULTS.bounds.parents.most

/**
 * `moved`; `repeated`: the target had the job, of an earlier run. Else it stays at the source: `full`, or why it was refused.
 * `KeyTaken`: another live job at the target has its key.
 */
export type Fate = 'moved' | 'repeated' | Left
/** Why a job stays at the source. */
export type Left = 'KeyTaken' | 'full' | MillpondError
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
  /** By id, of a call that failed in part and is made again: stores without `find` would store these twice. */
  readonly #known = new Map<string, Fate>()

  constructor(store: Store) {
    this.#store = store
  }

  /** @throws the errors of the store that do not come from one of the jobs */
  async take(records: readonly JobRecord[]): Promise<Fate[]> {
    const open = records.filter(({ id }) => !this.#known.has(id))
    const send = (some: readonly JobRecord[]) =>
      this.#store.capabilities.restore ? this.#restore(some) : this.#push(some)
    const fates = await splitting(open, send, 'storing moved jobs', { divides: (error) => !isOfTheStore(error) })
    for (const [index, { id }] of open.entries()) {
      const fate = fates[index] ?? unsaid()
      if (!isOfTheStore(fate)) this.#known.set(id, fate)
    }
    const failed = fates.find(isOfTheStore)
    if (failed !== undefined) throw failed
    return records.map(({ id }) => {
      const fate = this.#known.get(id) ?? unsaid()
      this.#known.delete(id)
      return fate
    })
  }

  /** Whether jobs of the one queue cannot wait for jobs of the other. */
  isApart(queue: string, other: string): boolean {
    const { shards } = this.#store
    return shards !== undefined && shards.of(queue) !== shards.of(other)
  }

  /** Blocked jobs of a queue whose parents have not come yet: the ids of those parents. */
  async awaited(queue: string): Promise<string[]> {
    const { capabilities, operations } = this.#store
    if (!capabilities.graphs) return []
    const missing = new Set<string>()
    let after: string | undefined
    do {
      const request = { queue, state: 'blocked' as const, limit: BATCH, ...(after !== undefined && { after }) }
      const page = await operations.list(request)
      const relatives = await operations.relatives({ ids: page.jobs.map(({ id }) => id), limit: MOST_PARENTS })
      const parents = relatives.flatMap((one) => one?.parents ?? [])
      const places = await placesOf(this.#store, parents)
      for (const id of parents) if (!places.has(id)) missing.add(id)
      after = page.next ?? undefined
    } while (after !== undefined)
    return [...missing]
  }

  async #restore(given: readonly JobRecord[]): Promise<Fate[]> {
    const { graphs, steps } = this.#store.capabilities
    const lacks = ({ state, journal }: JobRecord) =>
      (state === 'blocked' && !graphs) || (journal !== undefined && !steps)
    const fits = given.filter((record) => !lacks(record))
    const fates = (fits.length === 0 ? [] : await this.#restoreAll(fits)).values()
    return given.map((record) =>
      lacks(record) ? lacking('a graph, or the steps of a job') : (fates.next().value ?? unsaid()),
    )
  }

  async #restoreAll(records: readonly JobRecord[]): Promise<Fate[]> {
    const outcomes = await this.#store.operations.restore({ records })
    const fates = outcomes.map((outcome) => FATES[outcome])
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
      if (!fits[index]) return lacking(`a ${record.state} job with these options`)
      const outcome = outcomes[at++]
      return outcome === undefined ? unsaid() : fateOfPush(outcome, record)
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
  return error ?? unsaid()
}

const FATES: Record<RestoreOutcome, Fate> = {
  ...{ restored: 'moved', existing: 'repeated', full: 'full' },
  oversized: new MillpondError('PayloadTooLarge', 'the job is larger than the target takes'),
}

const isOfTheStore = (fate: Fate): fate is MillpondError =>
  fate instanceof MillpondError && OF_THE_STORE.includes(fate.code)

const unsaid = (): MillpondError =>
  new MillpondError('StoreFailed', 'the target has not stored a job, and does not say why')

const lacking = (what: string): MillpondError => new MillpondError('NotSupported', `the target cannot keep ${what}`)

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
