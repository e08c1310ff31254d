/**
 * The Redis store: one server, or a Redis Cluster, shared by any number of processes. Redis 6.2 or later, or Valkey.
 *
 * URL: `redis://user:password@host:6379/0`, `rediss://…` with TLS; `redis://a:7000,b:7000` or `?cluster=true` for a cluster;
 * `redis+sentinel://user:password@a:26379,b:26379/mymaster/0` and `rediss+sentinel://…` for a master that sentinels know. Options, in the
 * URL's query or as the second argument:
 * - `prefix` (`millpond`): what all keys begin with; stores of different prefixes share nothing.
 * - `partitions` (1): into how many parts, and so hash slots of a cluster, a queue that comes into being is split.
 * - `wait` (0): how many replicas must have a push or an ending before it is acknowledged.
 * - `timeout` (5000): ms until a call without an answer is rejected with `StoreUnavailable`.
 * - `sentinelUsername`, `sentinelPassword`: what the sentinels want; those of the URL are the server's.
 * - `client`: a Redis or Cluster of ioredis, of which the store makes connections of its own. Only as the second argument.
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
import { nothingFound } from './found.ts'
import { settleLinks } from './links.ts'
import { Notifier } from './notifier.ts'
import { partOfClaim, settleClaims } from './operations/claim.ts'
import { operationsOf } from './operations/index.ts'
import { Locations } from './partition.ts'
import { Patience } from './patience.ts'
import { partOfJob } from './pusher.ts'
import { Queues } from './queues.ts'
import { type Settings, storeSettings } from './settings.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: true, shared: true, pipelined: true, transactions: false, replicas: false, spill: false },
  ...{ settings: true, delays: true, priorities: true, keys: true, once: true, results: true, logs: true },
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
    const context = contextOf(calls, safeCalls, settings, options.clock)
    await context.queues.checkVersion()
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
  const { prefix, timeout } = settings
  const context: StoreContext = {
    calls,
    safeCalls,
    queues: new Queues(calls, settings),
    notifier: new Notifier(calls.client, `{${prefix}}:bells`, timeout),
    settle: (partition, told) => settleLinks(context, partition, told),
    prefix,
    timeout,
    now: clock ?? (() => null),
    settings: new Map(),
    locations: new Locations(),
    doubtfulClaims: new Map(),
    claimedFrom: new WeakMap(),
    patience: new Patience(),
    where: settings.where,
    evictionWatch: new EvictionWatch(),
    found: nothingFound(),
    silentBuckets: new Set(),
    queueCount: 0,
    awaitedCount: 0,
    awaitedFrom: Buffer.alloc(0),
    childless: new Map(),
    doubtfulEndings: new WeakSet(),
    rounds: 0,
  }
  return context
}

function storeOf(context: StoreContext): Store {
  let closing: Promise<void> | undefined
  return {
    name: 'redis',
    capabilities: CAPABILITIES,
    operations: operationsOf(context),
    parts: { ofJob: (job) => partOfJob(context, job), ofClaim: (claim) => partOfClaim(context, claim) },
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
