/**
 * The Redis store: one server, or a Redis Cluster, shared by any number of processes. Redis 6.2 or later, or Valkey.
 *
 * URL: `redis://user:password@host:6379/0`, `rediss://…` with TLS; `redis://a:7000,b:7000` or `?cluster=true` for a cluster;
 * `redis+sentinel://user:password@a:26379,b:26379/mymaster/0` and `rediss+sentinel://…` for a master that sentinels know. Options, in the
 * URL's query or as the second argument:
 * - `prefix` (`millpond`): what all keys begin with; stores of different prefixes share nothing.
 * - `wait` (0): how many replicas must have what a call has written before it is acknowledged.
 * - `timeout` (5000): ms until a call without an answer is rejected with `StoreUnavailable`.
 * - `sentinelUsername`, `sentinelPassword`: what the sentinels want; those of the URL are the server's.
 * - `client`: a Redis or Cluster of ioredis, of which the store makes connections of its own. Only as the second argument.
 *
 * All keys of a pond have the hash tag `{PREFIX}`, so each operation is one script and one commit.
 *
 * The path of a call: here → operations/, a file per group → connection/calls.ts → contract/redis/*.lua.
 */
import '../../values/runtime/runtime.ts'
import type { Capabilities, OpenStore, Store } from '../../store.ts'
import { keepProcessAlive } from '../keep-process-alive.ts'
import { newClient, ownLike } from '../redis-client/client.ts'
import { Calls } from './connection/calls.ts'
import { checkServer, EvictionWatch } from './connection/server.ts'
import type { StoreContext } from './context.ts'
import { Notifier } from './notifier.ts'
import { settleClaims } from './operations/claim.ts'
import { operationsOf } from './operations/index.ts'
import { type Settings, storeSettings } from './settings.ts'
import { checkVersion } from './version.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: true, shared: true, pipelined: true, transactions: false, replicas: false, spill: false },
  ...{
    settings: true,
    delays: true,
    priorities: true,
    keys: true,
    once: true,
    results: true,
    logs: true,
    steps: true,
  },
  ...{ graphs: true, limits: true, rates: true, groups: true },
  ...{ find: true, lists: true, text: true, cancel: true, update: true, requeue: true, remove: true, restore: true },
  ...{ counts: true, histograms: true, workers: true, schedules: true, bounded: false },
}

/** @throws InvalidOption, StoreUnavailable, StoreBusy, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = storeSettings(url, options)
  const client = settings.client === undefined ? await newClient(settings) : ownLike(settings.client, settings.timeout)
  // While the server waits for replicas it answers nothing else on that connection.
  const safe = settings.wait > 0 ? ownLike(client, settings.timeout) : client
  const calls = new Calls(client, { ...settings, wait: 0 })
  const safeCalls = safe === client ? calls : new Calls(safe, settings)
  try {
    await Promise.all([calls.connected(), safeCalls.connected()])
    await keepProcessAlive(checkServer(client, settings.where))
    await checkVersion(calls, settings)
    const context = contextOf(calls, safeCalls, settings, options.clock)
    return storeOf(context)
  } catch (error) {
    client.disconnect()
    safe.disconnect()
    throw error
  }
}

function contextOf(
  calls: Calls,
  safeCalls: Calls,
  settings: Settings,
  clock: (() => number) | undefined,
): StoreContext {
  const { prefix, timeout, where } = settings
  return {
    calls,
    safeCalls,
    notifier: new Notifier(calls.client, `{${prefix}}:bells`, timeout),
    timeout,
    now: clock ?? (() => null),
    settings: new Map(),
    doubtfulClaims: new Map(),
    doubtfulEndings: new WeakSet(),
    where,
    evictionWatch: new EvictionWatch(),
    serverAhead: null,
  }
}

function storeOf(context: StoreContext): Store {
  let closing: Promise<void> | undefined
  return {
    name: 'redis',
    capabilities: CAPABILITIES,
    operations: operationsOf(context),
    listen(listener) {
      context.calls.assertOpen()
      return context.notifier.listen(listener)
    },
    close() {
      closing ??= close(context)
      return closing
    },
  }
}

async function close(context: StoreContext): Promise<void> {
  const { calls, safeCalls, notifier } = context
  await settleClaims(context)
  await Promise.all([calls.close(), safeCalls.close()])
  notifier.close()
}
