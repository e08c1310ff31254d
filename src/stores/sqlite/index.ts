/**
 * The SQLite store: the embedded default. One file, which may be the application's own database and may be shared by any
 * number of processes on one machine.
 *
 * URL: `sqlite:app.db`, `sqlite:./dir/app.db`, `sqlite:///abs/app.db`. Options, in the URL's query or as the second argument:
 * - `sync`: `full` (default): an acknowledged push is on the disk. `normal`: a power cut may cost the last moments' pushes;
 *   a crash of the process costs nothing.
 * - `busyTimeout` (5000): ms to wait for another connection's lock before `StoreBusy`.
 * - `transactionTimeout` (10000): ms that a handler's transaction may be open before it is rolled back, to let others write.
 * - `driver` (in code alone; node:sqlite): the class `Database` of better-sqlite3, for an application that uses it. See `driver.ts`.
 *
 * A thread owns the connection, so that the event loop never waits for the disk. The path of a call: here →
 * `connection/client.ts` → `connection/thread.ts` → `connection/group-commit.ts` → `operations/` → the SQL of contract/sqlite/.
 */
import { debuglog } from 'node:util'
import '../../values/runtime.ts'
import type { OpenStore } from '../../store.ts'
import { copyEncoded } from '../jobs.ts'
import { ThreadClient } from './connection/client.ts'
import { driverOf } from './driver.ts'
import { settingsOf } from './settings.ts'
import { transactionsOf } from './transactions.ts'
import { claimedJobs, packJobs, pushOutcomes } from './wire.ts'

/** With `NODE_DEBUG=millpond`: which file a relative path leads to. */
const debug = debuglog('millpond')

/** @throws InvalidOption, DriverMissing, SecondLibrary, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const driver = driverOf(options.driver)
  const settings = settingsOf(url, options, driver.module)
  debug('opens %s with %s, sync=%s', settings.path, driver.module ?? 'node:sqlite', settings.sync)
  const client = await ThreadClient.open(settings, options.clock)
  return {
    name: 'sqlite',
    capabilities: { durable: true, shared: true, transactions: true, limits: true },
    transactions: transactionsOf(client, driver),
    admin: {
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
    listen: (listener) => client.listen(listener),
    close: () => client.close(),
  }
}
