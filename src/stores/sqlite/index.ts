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
 * `operations/index.ts` → `connection/client.ts` → `connection/thread.ts` → `connection/group-commit.ts` →
 * `operations/` → the SQL of contract/sqlite/.
 */
import { debuglog } from 'node:util'
import '../../values/runtime/runtime.ts'
import type { Capabilities, OpenStore } from '../../store.ts'
import { ThreadClient } from './connection/client.ts'
import { driverOf } from './driver.ts'
import { operationsOf } from './operations/index.ts'
import { settingsOf } from './settings.ts'
import { transactionsOf } from './transactions.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: true, shared: true, pipelined: false, transactions: true, replicas: false, spill: false },
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
  ...{ counts: true, histograms: true, workers: true, schedules: true, bounded: false },
}

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
    capabilities: CAPABILITIES,
    operations: operationsOf(client),
    transactions: transactionsOf(client, driver),
    listen: (listener) => client.listen(listener),
    close: () => client.close(),
  }
}
