/**
 * The Redis store: one server, or a Redis Cluster, shared by any number of processes. Redis 6.2 or later, or Valkey.
 *
 * URL: `redis://user:password@host:6379/0`, `rediss://…` with TLS; `redis://a:7000,b:7000` or `?cluster=true` for a cluster. Options, in the
 * URL's query or as the second argument:
 * - `prefix` (`millpond`): what all keys begin with; stores of different prefixes share nothing.
 * - `partitions` (1): into how many parts, and so slots of a cluster, a queue that comes into being is split.
 * - `wait` (0): how many replicas must have a push or an ending before it is acknowledged.
 * - `timeout` (5000): ms until a call without an answer is rejected with `StoreUnavailable`.
 * - `client`: a Redis or Cluster of ioredis, which stays the caller's to close. Only as the second argument.
 *
 * The path of a call: here → inputs.ts (MessagePack) → link.ts (calls of one turn go together) → contract/redis/*.lua → outputs.ts.
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
import { IdleQueues } from './idle.ts'
import { RedisAdmin } from './redis/admin.ts'
import { Claimer } from './redis/claimer.ts'
import { checkServer, clientFor, connected, type ServerFacts } from './redis/client.ts'
import { configure } from './redis/configure.ts'
import { Doorbell } from './redis/doorbell.ts'
import { Endings } from './redis/endings.ts'
import { recordInput } from './redis/inputs.ts'
import { Link } from './redis/link.ts'
import { Lookup } from './redis/lookup.ts'
import { push } from './redis/push.ts'
import { Queues } from './redis/queues.ts'
import { ServerRun } from './redis/run.ts'
import { type Settings, settingsOf } from './redis/settings.ts'
import type { Shared } from './redis/shared.ts'
import { stats } from './redis/stats.ts'
import { sweep } from './redis/sweep.ts'

/** @throws InvalidOption, StoreUnavailable, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  const client = await clientFor(settings)
  try {
    await connected(client, settings)
    return new RedisStore(
      new Link(client, settings),
      settings,
      await held(checkServer(client, settings.where)),
      options.clock,
    )
  } catch (error) {
    if (settings.client === undefined) client.disconnect()
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
  readonly #own: boolean
  readonly #claimer: Claimer
  readonly #endings: Endings
  readonly #lookup: Lookup
  #closing: Promise<void> | undefined

  constructor(link: Link, settings: Settings, server: ServerFacts, clock: (() => number) | undefined) {
    const origin = randomUUID()
    const queues = new Queues(link, settings, origin)
    const doorbell = new Doorbell(link.client, queues.channel, origin)
    const now = clock === undefined ? () => null : clock
    this.#own = settings.client === undefined
    const run = new ServerRun(link.client, this.#own)
    this.#shared = { link, queues, doorbell, bells: doorbell.local, run, idle: new IdleQueues(), now }
    this.server = server
    this.#claimer = new Claimer(this.#shared)
    this.#endings = new Endings(this.#shared, this.#claimer)
    this.#lookup = new Lookup(this.#shared)
    this.admin = new RedisAdmin(this.#shared, this.#lookup)
  }

  configure(settings: QueueSettings): Promise<void> {
    return configure(this.#shared, settings)
  }

  push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    return push(this.#shared, jobs)
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

  extend(queue: string, lease: number, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    return this.#endings.extend(queue, lease, extensions)
  }

  cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    return this.#lookup.cancel(ids)
  }

  sweep(limit: number): Promise<Swept> {
    return sweep(this.#shared, limit)
  }

  async find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    const found = await this.#lookup.find(ids)
    return found.map((one) => one?.record ?? null)
  }

  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]> {
    return stats(this.#shared, options)
  }

  async record(slices: readonly HistogramSlice[]): Promise<void> {
    const { link, queues, now } = this.#shared
    link.assertOpen()
    for (const queue of new Set(slices.map((slice) => slice.queue))) {
      // Figures of all partitions go into the first: they are summed anyhow.
      const [partition] = await queues.look(queue)
      if (partition === undefined) continue
      const input = recordInput(
        now(),
        partition,
        slices.filter((slice) => slice.queue === queue),
      )
      await link.call('record', partition, input.bytes)
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
    const { link, doorbell } = this.#shared
    await link.close()
    await doorbell.close()
    if (this.#own) link.client.disconnect()
  }
}
