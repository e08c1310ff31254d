/**
 * The memory store: for work that may be lost with the process, and for tests. The same operations as every other store.
 *
 * URL: `memory:`, without a path. Every `open` makes a store of its own; what is left in it ends with `close`, unless
 * there is a spill store (`../spill/`).
 *
 * It is bounded, where others need not be:
 * - a queue holds 100,000 blocked, scheduled and waiting jobs unless `configure` says otherwise (`capacity: null`: without limit);
 * - of done, dead and cancelled jobs, each, a queue keeps the latest 10,000, however long they were to be kept.
 *
 * Every operation does its work within the call, before it returns its promise, so that calls take effect in the order in
 * which they are made; only the answer to a push may come a tick of the event loop later (`tick.ts`). `queue.ts` tells the
 * path of a job through the structures.
 */
import '../../values/runtime/runtime.ts'
import type { Capabilities, OpenStore, Store, StoreOptions } from '../../store.ts'
import { checkNames, invalid } from '../options.ts'
import { operationsOf } from './operations/index.ts'
import { MemoryState } from './state.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: false, shared: false, pipelined: false, transactions: false, replicas: false, spill: false },
  ...{
    settings: true,
    delays: true,
    priorities: true,
    keys: true,
    once: true,
    graphs: true,
    results: true,
    logs: true,
    steps: true,
    limits: true,
    rates: true,
    groups: true,
  },
  ...{ find: true, lists: true, text: true, cancel: true, update: true, requeue: true, remove: true, restore: true },
  ...{ counts: true, histograms: true, workers: true, schedules: true, bounded: true },
}

export const open: OpenStore = async (url, options) => openMemory(url, options).store

/** @internal With the state, for what stands around the store and must look into it: spill-over. */
export function openMemory(url: URL | string, options: StoreOptions): { store: Store; state: MemoryState } {
  const [address, query = ''] = String(url).split('?')
  if (address !== 'memory:' && address !== 'memory://') {
    invalid('the memory store is opened with "memory:", and perhaps an option such as ?spill=…: no host, no path')
  }
  checkNames(options, new URLSearchParams(query).keys(), [], 'the memory store')
  const clock = options.clock ?? Date.now
  const state = new MemoryState(clock)
  const store: Store = {
    name: 'memory',
    clock,
    capabilities: CAPABILITIES,
    operations: operationsOf(state),
    listen(listener) {
      state.assertOpen()
      return state.bells.listen(listener)
    },
    close: async () => state.close(),
  }
  return { store, state }
}
