/** The metrics of a pond, in the text format of Prometheus. docs/metrics.md lists them. */
import { type Figures, figuresOf } from '../pond/figures.ts'
import type { Millpond } from '../pond/millpond.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { exposition } from './exposition.ts'
import { ListedQueues } from './listed-queues.ts'
import { queueFamilies } from './queue-families.ts'
import { StoreCalls } from './store-calls.ts'

/** Milliseconds that the store's figures are reused, so that many scrapers cost no more than one. */
const TTL = 1000

export type MetricsPond = Pick<Millpond, 'store' | 'stopping'>

export class PondMetrics {
  readonly #pond: MetricsPond
  readonly #listed: ListedQueues
  readonly #calls: StoreCalls
  readonly #onError: (error: unknown) => void
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<string> | undefined

  /** @param onError called where the store cannot be asked: the text then says so, and holds the rest */
  constructor(pond: MetricsPond, maxQueues: number, onError: (error: unknown) => void) {
    this.#pond = pond
    this.#listed = new ListedQueues(maxQueues)
    this.#calls = new StoreCalls(pond.store.name)
    this.#onError = onError
    pond.stopping.addEventListener('abort', () => this.#calls.close(), { once: true })
  }

  /** @throws Closed */
  async text(): Promise<string> {
    const now = performance.now()
    if (this.#reading === undefined || now - this.#readAt > TTL) {
      this.#readAt = now
      this.#reading = this.#read()
    }
    const figures = await this.#reading
    return figures + exposition(this.#calls.families())
  }

  async #read(): Promise<string> {
    const figures = await this.#figures()
    const up = Number(figures !== undefined)
    const families = figures === undefined ? [] : queueFamilies(figures, this.#listed.among(namesOf(figures)))
    const help = '1: the store answered this scrape.'
    return exposition([
      {
        name: 'millpond_store_up',
        type: 'gauge',
        help,
        samples: [{ labels: { store: this.#pond.store.name }, value: up }],
      },
      ...families,
    ])
  }

  async #figures(): Promise<Figures | undefined> {
    try {
      return await figuresOf(this.#pond)
    } catch (error) {
      if (isMillpondError(error) && error.code === 'Closed') throw error
      this.#onError(error)
      return undefined
    }
  }
}

const namesOf = ({ queues }: Figures): string[] => queues.map(({ queue }) => queue)
