/**
 * The SQLite store: the embedded default. One file, which may be the application's own database and may be shared by any
 * number of processes on one machine.
 *
 * URL: `sqlite:app.db`, `sqlite:./dir/app.db`, `sqlite:///abs/app.db`. Options, in the URL's query or as the second argument:
 * - `sync`: `full` (default): an acknowledged push is on the disk. `normal`: a power cut may cost the last moments' pushes;
 *   a crash of the process costs nothing.
 * - `busyTimeout` (5000): ms to wait for another connection's lock before `StoreBusy`.
 * - `transactionTimeout` (10000): ms that a handler's transaction may be open before it is rolled back, to let others write.
 *
 * A thread owns the connection, so that the event loop never waits for the disk. The path of a call: here →
 * `connection/client.ts` → `connection/thread.ts` → `connection/group-commit.ts` → `operations/` → the SQL of contract/sqlite/.
 */
import '../../values/runtime.ts'
import type { OpenStore } from '../../store.ts'
import { copyEncoded } from '../jobs.ts'
import { ThreadClient } from './connection/client.ts'
import { settingsOf } from './settings.ts'
import { transactionsOf } from './transactions.ts'
import { claimedJobs, packJobs, pushOutcomes } from './wire.ts'

/** @throws InvalidOption, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const client = await ThreadClient.open(settingsOf(url, options), options.clock)
  return {
    name: 'sqlite',
    capabilities: { durable: true, shared: true, transactions: true, limits: true },
    transactions: transactionsOf(client),
    admin: {
      settings: (queue) => client.call('settings', queue),
      list: (request) => client.call('list', request),
      requeue: (request) => client.call('requeue', request),
      groups: (request) => client.call('groups', request),
      ahead: (id) => client.call('ahead', id),
    },
    configure: (settings) => client.call('configure', settings),
    limitGroup: (queue, group, limits) => client.call('limitGroup', { queue, group, limits }),
    push: async (jobs) => pushOutcomes(jobs, await client.call('push', packJobs(jobs))),
    async claim(request) {
      const { jobs, data, ...claimed } = await client.call('claim', request)
      return { ...claimed, jobs: claimedJobs({ jobs, data }) }
    },
    complete: (queue, completions) => client.complete(queue, completions),
    // Callers may have more beside what the interface names, which cannot be cloned or is large.
    fail: (queue, all) =>
      client.call('fail', { queue, failures: all.map(({ id, fence, error, delay }) => ({ id, fence, error, delay })) }),
    release: (queue, all) =>
      client.call('release', { queue, releases: all.map(({ id, fence, pause = 0 }) => ({ id, fence, pause })) }),
    extend: (queue, lease, given) => {
      const extensions = given.map(({ id, fence, progress }) => ({ id, fence, progress: copyEncoded(progress) }))
      return client.call('extend', { queue, lease, extensions })
    },
    cancel: (ids) => client.call('cancel', ids),
    sweep: (limit) => client.call('sweep', limit),
    find: (ids) => client.call('find', ids),
    stats: (request) => client.call('stats', request),
    record: (slices) => client.call('record', slices),
    noteClaims: (queues) => client.call('noteClaims', queues),
    listen: (listener) => client.listen(listener),
    close: () => client.close(),
  }
}
