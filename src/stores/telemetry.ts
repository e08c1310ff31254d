/**
 * Publishes each operation of a store on the channel `millpond:operation` of `node:diagnostics_channel`, once it has
 * ended. Transactions are no operations. With no subscriber, nothing is measured.
 */
import { channel } from 'node:diagnostics_channel'
import type { OperationName, Store } from '../store.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { StoreOperation } from '../values/operations/store-operation.ts'
import { around } from './around.ts'

const operations = channel('millpond:operation')

export function observed(store: Store): Store {
  return around(store, (name, input, next) =>
    operations.hasSubscribers ? publish(store.name, name, input, () => next(input)) : next(input),
  )
}

async function publish<Out>(store: string, name: OperationName, input: object, run: () => Promise<Out>): Promise<Out> {
  const began = performance.now()
  const told = (items: number | null, code: string | null): StoreOperation => {
    return { store, name, queue: queueOf(input), items, ms: performance.now() - began, code }
  }
  try {
    const output = await run()
    operations.publish(told((batchOf(input) ?? batchOf(output))?.length ?? null, null))
    return output
  } catch (error) {
    operations.publish(told(batchOf(input)?.length ?? null, isMillpondError(error) ? error.code : 'StoreFailed'))
    throw error
  }
}

/** Under which of these names an input has its batch. */
const BATCHES = ['jobs', 'items', 'ids', 'records', 'slices', 'workers', 'schedules', 'firings']

function batchOf(input: unknown): readonly unknown[] | null {
  if (!isObject(input)) return null
  return BATCHES.map((name) => input[name]).find(Array.isArray) ?? null
}

function queueOf(input: unknown): string | null {
  if (isObject(input) && typeof input.queue === 'string') return input.queue
  const batch = batchOf(input) ?? []
  const nameOf = (item: unknown) => (isObject(item) ? item.queue : undefined)
  const queue = nameOf(batch[0])
  // Without a list or a set of the names: a push may have 500 jobs.
  return typeof queue === 'string' && batch.every((item) => nameOf(item) === queue) ? queue : null
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
