/** A memory store that spills all it can: queues hold two jobs in memory, unless they are told a capacity. */
import type { Operations, Store, StoreOptions } from '../../src/store.ts'
import { openMemory } from '../../src/stores/memory/index.ts'
import type { MemoryState } from '../../src/stores/memory/state.ts'
import { spillOver } from '../../src/stores/spill/index.ts'

const IN_MEMORY = 2

/** Stands for a durable store. What it holds ends with the test. */
export function openDurable(options: StoreOptions = {}): Store {
  const { store } = openMemory('memory:', options)
  return { ...store, capabilities: { ...store.capabilities, durable: true } }
}

/** @param durable closed with it */
export async function openSpilling(options: StoreOptions = {}, durable?: Store): Promise<Store> {
  const { store, state } = openMemory('memory:', options)
  const { clock } = options
  const spilling = await spillOver(store, state, durable ?? openDurable(clock === undefined ? {} : { clock }))
  const { push } = spilling.operations
  const operations: Operations = {
    ...spilling.operations,
    push: ({ jobs, ...rest }) =>
      push({ ...rest, jobs: jobs.map((job) => ({ ...job, spill: isBounded(state, job.queue) })) }),
  }
  return { ...spilling, operations }
}

/** Bounds the queue, unless the test gives it a capacity. */
function isBounded(state: MemoryState, name: string): boolean {
  const { given, settings } = state.findOrCreate(name)
  if (given.code.capacity !== undefined || given.operator.capacity !== undefined) return false
  settings.capacity = IN_MEMORY
  return true
}
