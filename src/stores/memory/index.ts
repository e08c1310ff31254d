/**
 * The memory store: for work that may be lost with the process, and for tests. The same operations as every other store.
 *
 * URL: `memory:`, without path or options. Every `open` makes a store of its own; what is left in it ends with `close`.
 *
 * It is bounded, where others need not be:
 * - a queue holds 100,000 scheduled and waiting jobs unless `configure` says otherwise (`capacity: null`: without limit);
 * - of done, dead and cancelled jobs, each, a queue keeps the latest 10,000, however long they were to be kept.
 *
 * Every method does its work within the call, before it returns its promise, so that calls take effect in the order in
 * which they are made; only the answer to a push may come a turn of the event loop later (`turn.ts`). `queue.ts` tells the
 * path of a job through the structures.
 */
import '../../values/runtime.ts'
import type { OpenStore } from '../../store.ts'
import { checkNames, invalid } from '../options.ts'
import { cancel } from './operations/cancel.ts'
import { claim } from './operations/claim.ts'
import { configure, limitGroup, settings } from './operations/configure.ts'
import { complete, fail, release } from './operations/end.ts'
import { extend } from './operations/extend.ts'
import { ahead, find, groups, list } from './operations/find.ts'
import { push } from './operations/push.ts'
import { requeue } from './operations/requeue.ts'
import { noteClaims, record, stats } from './operations/stats.ts'
import { sweep } from './operations/sweep.ts'
import { MemoryState } from './state.ts'

export const open: OpenStore = async (url, options) => {
  const [address, query = ''] = String(url).split('?')
  if (address !== 'memory:' && address !== 'memory://') {
    invalid('the memory store is opened with "memory:" and nothing more: no host, no path')
  }
  checkNames(options, new URLSearchParams(query).keys(), [], 'the memory store')
  const state = new MemoryState(options.clock ?? Date.now)
  const on =
    <Args extends unknown[], Answer>(operation: (state: MemoryState, ...args: Args) => Answer | Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      state.assertOpen()
      return operation(state, ...args)
    }
  return {
    name: 'memory',
    capabilities: { durable: false, shared: false, transactions: false, limits: true },
    admin: { settings: on(settings), list: on(list), requeue: on(requeue), groups: on(groups), ahead: on(ahead) },
    configure: on(configure),
    limitGroup: on(limitGroup),
    push: on(push),
    claim: on(claim),
    complete: on(complete),
    fail: on(fail),
    release: on(release),
    extend: on(extend),
    cancel: on(cancel),
    sweep: on(sweep),
    find: on(find),
    stats: on(stats),
    record: on(record),
    noteClaims: on(noteClaims),
    listen(listener) {
      state.assertOpen()
      return state.bells.listen(listener)
    },
    close: async () => state.close(),
  }
}
