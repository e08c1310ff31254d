/** What a pond's queues look like whenever metrics are collected: the same figures as `/metrics` has. */
import type { BatchObservableResult, Meter } from '@opentelemetry/api'
import { ListedQueues } from '../metrics/listed-queues.ts'
import { queueFamilies } from '../metrics/queue-families.ts'
import { figuresOf } from '../pond/figures.ts'
import type { Millpond } from '../pond/millpond.ts'
import { isMillpondError } from '../values/errors/errors.ts'

/** As of `metrics`, unless set there. */
const MAX_QUEUES = 100

/** By the name that `/metrics` has. */
const GAUGES = {
  millpond_jobs: { name: 'millpond.jobs', unit: '{job}', description: 'Jobs that the store has, by state.' },
  millpond_oldest_waiting_seconds: {
    ...{ name: 'millpond.oldest_waiting', unit: 's' },
    description: 'Time since the oldest waiting job was due; 0 if none waits.',
  },
  millpond_workers: {
    ...{ name: 'millpond.workers', unit: '{worker}' },
    description: 'Workers that were heard of in the last minute.',
  },
} as const

/** @returns ends it */
export function gauges(meter: Meter, pond: Pick<Millpond, 'stopping'>): () => void {
  const listed = new ListedQueues(MAX_QUEUES)
  const known = Object.entries(GAUGES).map(([family, { name, ...options }]) => {
    return { family, gauge: meter.createObservableGauge(name, options) }
  })
  const all = known.map(({ gauge }) => gauge)
  const observe = async (result: BatchObservableResult) => {
    try {
      const figures = await figuresOf(pond)
      const families = queueFamilies(figures, listed.among(figures.queues.map(({ queue }) => queue)))
      for (const { family, gauge } of known) {
        for (const { labels, value } of families.find(({ name }) => name === family)?.samples ?? []) {
          const { queue = '', ...others } = labels
          result.observe(gauge, value, { 'messaging.destination.name': queue, ...others })
        }
      }
    } catch (error) {
      // A store that cannot be reached shows in `millpond.store.operation.duration`, and the gauges have no value.
      if (!isMillpondError(error)) throw error
    }
  }
  meter.addBatchObservableCallback(observe, all)
  const end = () => meter.removeBatchObservableCallback(observe, all)
  pond.stopping.addEventListener('abort', end, { once: true })
  return end
}
