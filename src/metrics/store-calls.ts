/** Times and errors of this process's calls to stores, from the channel `millpond:operation`. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ErrorCode } from '../values/errors/errors.ts'
import { bucketOf } from '../values/figures/histogram.ts'
import type { StoreOperation } from '../values/operations/store-operation.ts'
import type { Family, Sample } from './exposition.ts'
import { histogramSeries } from './histogram-series.ts'

const CHANNEL = 'millpond:operation'
const STORE_ERRORS: readonly ErrorCode[] = ['StoreUnavailable', 'StoreBusy', 'StoreFull', 'StoreFailed', 'StoreCorrupt']

interface Calls {
  store: string
  operation: string
  /** Bucket index → how many. */
  buckets: Record<number, number>
}

export class StoreCalls {
  /** By kind of store and operation. */
  readonly #calls = new Map<string, Calls>()
  /** By kind of store, then by code. */
  readonly #errors = new Map<string, Map<string, number>>()

  /** @param store the kind whose errors are counted from 0 */
  constructor(store: string) {
    this.#errorsOf(store)
    subscribe(CHANNEL, this.#ended)
  }

  close(): void {
    unsubscribe(CHANNEL, this.#ended)
  }

  families(): Family[] {
    const times = [...this.#calls.values()].flatMap(({ store, operation, buckets }) =>
      histogramSeries({ store, operation }, buckets),
    )
    const errors = [...this.#errors].flatMap(([store, codes]) =>
      [...codes].map(([code, value]): Sample => ({ labels: { store, code }, value })),
    )
    return [
      {
        ...{ name: 'millpond_store_call_seconds', type: 'histogram', samples: times },
        help: 'Time of a call to the store, of this process, by operation.',
      },
      {
        ...{ name: 'millpond_store_errors_total', type: 'counter', samples: errors },
        help: 'Calls to the store that failed, of this process, by error code.',
      },
    ]
  }

  // Only src/stores/telemetry.ts publishes on this channel.
  readonly #ended = (message: unknown): void => {
    const { store, name, ms, code } = message as StoreOperation
    const key = `${store} ${name}`
    let calls = this.#calls.get(key)
    if (calls === undefined) {
      calls = { store, operation: name, buckets: {} }
      this.#calls.set(key, calls)
    }
    const bucket = bucketOf(ms)
    calls.buckets[bucket] = (calls.buckets[bucket] ?? 0) + 1
    if (code === null) return
    const errors = this.#errorsOf(store)
    errors.set(code, (errors.get(code) ?? 0) + 1)
  }

  /** Those of the store itself begin at 0, because no rate is known of a series that begins at 1. */
  #errorsOf(store: string): Map<string, number> {
    const known = this.#errors.get(store) ?? new Map(STORE_ERRORS.map((code): [string, number] => [code, 0]))
    this.#errors.set(store, known)
    return known
  }
}
