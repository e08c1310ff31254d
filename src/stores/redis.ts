/**
 * The Redis store: one server, or a Redis Cluster, shared by any number of processes. Redis 6.2 or later, or Valkey.
 *
 * URL: `redis://user:password@host:6379/0`, `rediss://…` with TLS; `redis://a:7000,b:7000` or `?cluster=true` for a cluster. Options, in the
 * URL's query or as the second argument:
 * - `prefix` (`millpond`): what all keys begin with; stores of different prefixes share nothing.
 * - `partitions` (1): into how many parts, and so slots of a cluster, a queue that comes into being is split.
 * - `wait` (0): how many replicas must have a push or an ending before it is acknowledged.
 * - `timeout` (5000): ms until a call without an answer is rejected with `StoreUnavailable`.
 * - `client`: a Redis or Cluster of ioredis, of which the store makes connections of its own. Only as the second argument.
 *
 * The path of a call: here → one file per operation → link.ts (calls of one turn go together) → contract/redis/*.lua → replies.ts.
 */
import '../runtime.ts'
import { randomUUID } from 'node:crypto'
import type {
  Bell,
  Capabilities,
  Claimed,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HistogramSlice,
  Hold,
  HoldOutcome,
  JobRecord,
  NewJob,
  OpenStore,
  PushOutcome,
  QueueSettings,
  QueueStats,
  Store,
  StoreAdmin,
  Swept,
} from '../store.ts'
import { held } from './held.ts'
import { RedisAdmin } from './redis/admin.ts'
import { Claimer } from './redis/claimer.ts'
import { checkServer, connected, ownClient, ownLike, type ServerFacts } from './redis/client.ts'
import { Configured } from './redis/configure.ts'
import { Doorbell } from './redis/doorbell.ts'
import { Endings } from './redis/endings.ts'
import { Link } from './redis/link.ts'
import { Lookup } from './redis/lookup.ts'
import { Pusher } from './redis/push.ts'
import { Queues } from './redis/queues.ts'
import { type Client, type Settings, settingsOf } from './redis/settings.ts'
import { Shared } from './redis/shared.ts'
import { stats } from './redis/stats.ts'
import { Sweeper } from './redis/sweep.ts'

/** @throws InvalidOption, StoreUnavailable, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  const client = await ownClient(settings)
  // While the server waits for replicas it answers nothing else on that connection.
  const safe = settings.wait > 0 ? ownLike(client) : client
  try {
    await Promise.all([connected(client, settings), connected(safe, settings)])
    return new RedisStore(client, safe, settings, await held(checkServer(client, settings.where)), options.clock)
  } catch (error) {
    client.disconnect()
    safe.disconnect()
    throw error
  }
}

export class RedisStore implements Store {
  readonly name = 'redis'
  readonly pipelined = true
  readonly capabilities: Capabilities = { durable: true, shared: true, transactions: false }
  readonly admin: StoreAdmin
  /** What the server's persistence settings mean for acknowledged jobs, in words; and its version. */
  readonly server: ServerFacts
  readonly #shared: Shared
  readonly #configured: Configured
  readonly #pusher: Pusher
  readonly #claimer: Claimer
  readonly #endings: Endings
  readonly #lookup: Lookup
  readonly #sweeper: Sweeper
  #closing: Promise<void> | undefined

  constructor(
    client: Client,
    safe: Client,
    settings: Settings,
    server: ServerFacts,
    clock: (() => number) | undefined,
  ) {
    const { prefix, timeout } = settings
    const origin = randomUUID()
    const link = new Link(client, { ...settings, wait: 0 })
    this.#shared = new Shared({
      link,
      safe: safe === client ? link : new Link(safe, settings),
      queues: new Queues(link, settings),
      doorbell: new Doorbell(client, `{${prefix}}:bells`, origin, timeout),
      origin,
      now: clock === undefined ? () => null : clock,
    })
    this.server = server
    this.#configured = new Configured(this.#shared)
    this.#lookup = new Lookup(this.#shared)
    this.#pusher = new Pusher(this.#shared, this.#configured, this.#lookup)
    this.#claimer = new Claimer(this.#shared, this.#configured, timeout)
    this.#endings = new Endings(this.#shared, this.#claimer)
    this.#sweeper = new Sweeper(this.#shared, prefix)
    this.admin = new RedisAdmin(this.#shared, this.#lookup)
  }

  configure(settings: QueueSettings): Promise<void> {
    return this.#configured.configure(settings)
  }

  push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    return this.#pusher.push(jobs)
  }

  lane(job: NewJob): string {
    return this.#pusher.lane(job)
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.#claimer.claim(request)
  }

  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    return this.#endings.complete(queue, completions)
  }

  fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    return this.#endings.fail(queue, failures)
  }

  release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    return this.#endings.release(queue, holds)
  }

  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    return this.#endings.extend(queue, lease, extensions)
  }

  cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    return this.#lookup.cancel(ids)
  }

  sweep(limit: number): Promise<Swept> {
    return this.#sweeper.sweep(limit)
  }

  async find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    const found = await this.#lookup.find(ids)
    return found.map((one) => one?.record ?? null)
  }

  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]> {
    return stats(this.#shared, options)
  }

  async record(slices: readonly HistogramSlice[]): Promise<void> {
    const { link, queues } = this.#shared
    link.assertOpen()
    for (const queue of new Set(slices.map((slice) => slice.queue))) {
      // Figures of all partitions go into the first: they are summed anyhow.
      const [partition] = await queues.look(queue)
      if (partition !== undefined) await this.#shared.ask('record', partition, [recordItems(slices, queue)])
    }
  }

  listen(listener: (bell: Bell) => void): () => void {
    this.#shared.link.assertOpen()
    return this.#shared.doorbell.listen(listener)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { link, safe, doorbell } = this.#shared
    await this.#claimer.close()
    await Promise.all([link.close(), safe.close()])
    await doorbell.close()
    link.client.disconnect()
    safe.client.disconnect()
  }
}

/** As `record.lua` takes them. */
function recordItems(slices: readonly HistogramSlice[], queue: string): number[] {
  return slices
    .filter((slice) => slice.queue === queue)
    .flatMap(({ priority, metric, buckets }) =>
      Object.entries(buckets).flatMap(([bucket, count]) => [
        priority,
        metric === 'wait' ? 0 : 1,
        Number(bucket),
        count,
      ]),
    )
}
