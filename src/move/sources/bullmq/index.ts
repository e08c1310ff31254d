/**
 * The jobs of BullMQ's queues, version 5 or later: waiting, prioritized, delayed and failed ones. `bullmq+redis://host:6379/0?prefix=bull`.
 * Running and completed jobs stay, as do those of flows and job schedulers.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { connected, newClient } from '../../../stores/redis-client/client.ts'
import { toMillpondError } from '../../../stores/redis-client/errors.ts'
import { settingsOf } from '../../../stores/redis-client/settings.ts'
import { MillpondError } from '../../../values/errors/errors.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import { isQueueName } from '../../../values/settings/names.ts'
import { retried } from '../../retry.ts'
import type { Batch, OpenRival, QueueCounts, Source, SourceSettings } from '../../source.ts'
import { recordOf, type Taken } from './record.ts'
import { PUT_BACK, REMOVE, RESUME, TAKE, TAKEN } from './scripts.ts'

/** Jobs of a batch, and of the data of one. */
const BATCH = 500
const MAX_BYTES_PER_BATCH = 4 * 1024 * 1024
/** In the order of BullMQ's workers. */
const LISTS = ['wait', 'paused', 'prioritized', 'delayed', 'failed']

export const open: OpenRival = async (text, onTrouble, stop) => {
  const url = text.replace(/^bullmq\+/, '')
  const { prefix, rest } = prefixIn(url)
  const numbers = { timeout: [5000, 100, 600_000] as const }
  const settings = settingsOf(rest, {}, { by: 'the BullMQ source', prefix: 'bull', numbers, others: [] })
  if (settings.cluster) {
    throw new MillpondError(
      'NotSupported',
      'BullMQ in a Redis Cluster cannot be moved from: name the one server that has its keys',
    )
  }
  const client = await newClient(settings)
  if ('nodes' in client) throw new MillpondError('NotSupported', 'BullMQ is read from one server')
  await connected(client, settings)
  const answered = <T>(call: () => Promise<T>) =>
    retried(
      () => call().catch((error: unknown) => Promise.reject(toMillpondError(error, settings.where))),
      onTrouble,
      stop,
    )
  return new BullMQ(client, prefix, answered)
}

/** Not one of Millpond's prefixes: it may have braces. */
function prefixIn(url: string): { prefix: string; rest: string } {
  const [address = '', query = ''] = url.split('?')
  const params = new URLSearchParams(query)
  const prefix = params.get('prefix') ?? 'bull'
  params.delete('prefix')
  return { prefix, rest: params.size === 0 ? address : `${address}?${params}` }
}

/** Calls Redis, and repeats what fails for the moment. */
type Answered = <T>(call: () => Promise<T>) => Promise<T>

class BullMQ implements Source {
  readonly name = 'BullMQ'
  readonly #client: Redis
  readonly #prefix: string
  readonly #answered: Answered
  /** What the target refused goes back after the pass, which would take it again. */
  #refused: (() => Promise<void>)[] = []

  constructor(client: Redis, prefix: string, answered: Answered) {
    this.#client = client
    this.#prefix = prefix
    this.#answered = answered
  }

  async counts(): Promise<QueueCounts[]> {
    return Promise.all(
      (await this.#queues()).map(async (queue) => {
        const base = this.#base(queue)
        const [wait, paused, active, taken, prioritized, scheduled, dead] = await this.#answered(() =>
          Promise.all([
            ...['wait', 'paused', 'active'].map((name) => this.#client.llen(base + name)),
            this.#client.hlen(base + TAKEN),
            ...['prioritized', 'delayed', 'failed'].map((name) => this.#client.zcard(base + name)),
          ]),
        )
        const waiting = (wait ?? 0) + (paused ?? 0) + (prioritized ?? 0) + (taken ?? 0)
        const counts = {
          blocked: 0,
          waiting,
          running: active ?? 0,
          scheduled: scheduled ?? 0,
          dead: dead ?? 0,
          done: 0,
          cancelled: 0,
        }
        return { queue, counts }
      }),
    )
  }

  /** The limits that BullMQ keeps for a whole queue. Those of its workers are theirs. */
  async settings(queue: string): Promise<SourceSettings> {
    const fields = ['paused', 'concurrency', 'max', 'duration']
    const answer = await this.#answered(() => this.#client.hmget(`${this.#base(queue)}meta`, ...fields))
    const [paused, running = 0, count = 0, per = 0] = answer.map((value) =>
      value === null ? undefined : Number(value),
    )
    return {
      code: { ...(running > 0 && { running }), ...(count > 0 && per > 0 && { rate: { count, per, burst: null } }) },
      ...{ operator: {}, paused: paused !== undefined, grouped: false, groups: [] },
    }
  }

  async *leftovers(queue: string): AsyncIterable<Batch> {
    const ids = await this.#answered(() => this.#client.hkeys(this.#base(queue) + TAKEN))
    for (let at = 0; at < ids.length; at += BATCH) {
      const mark = randomUUID()
      const { taken } = await this.#run(RESUME, queue, [mark, ...ids.slice(at, at + BATCH)])
      if (taken.length > 0) yield this.#batch(queue, taken, mark, false)
    }
  }

  async *pass(queue: string): AsyncIterable<Batch> {
    yield* this.leftovers(queue)
    for (const list of LISTS) {
      for (let skip = 0; ; ) {
        const mark = randomUUID()
        const { passed, taken } = await this.#run(TAKE, queue, [mark, list, skip, BATCH, MAX_BYTES_PER_BATCH])
        skip += passed
        if (taken.length > 0) yield this.#batch(queue, taken, mark, true)
        else if (passed === 0) break
      }
    }
  }

  async runsOlder(queue: string): Promise<boolean> {
    await this.tend()
    // Or whether the answer of a script that took jobs was lost.
    const base = this.#base(queue)
    const [active, taken] = await this.#answered(() =>
      Promise.all([this.#client.llen(`${base}active`), this.#client.hlen(base + TAKEN)]),
    )
    return active + taken > 0
  }

  async tend(): Promise<void> {
    for (const putBack of this.#refused.splice(0)) await putBack()
  }

  async close(): Promise<void> {
    await this.tend().catch(() => {})
    this.#client.disconnect()
  }

  /** @param isFirst no other move has had them before */
  #batch(queue: string, taken: readonly Taken[], mark: string, isFirst: boolean): Batch {
    const records = taken.map((one) => recordOf(one, this.#prefix, queue))
    const idOf = new Map(records.map(({ id }, index) => [id, taken[index]?.[0] ?? '']))
    const idsOf = (some: readonly JobRecord[]) => some.map(({ id }) => idOf.get(id) ?? '')
    const putBack = (some: readonly JobRecord[]) => this.#tell(PUT_BACK, queue, idsOf(some).reverse(), [mark])
    return {
      records,
      renewAt: Number.POSITIVE_INFINITY,
      renew: async () => {},
      remove: (some) => this.#tell(REMOVE, queue, idsOf(some)),
      putBack: async (some) => void this.#refused.push(() => putBack(some)),
      // What an earlier move had taken may be at the target.
      abandon: async () => {
        if (isFirst) await putBack(records)
      },
    }
  }

  async #tell(script: string, queue: string, ids: string[], before: string[] = []): Promise<void> {
    if (ids.length > 0) await this.#run(script, queue, [...before, ...ids])
  }

  async #run(script: string, queue: string, args: (string | number)[]): Promise<{ passed: number; taken: Taken[] }> {
    const answer: unknown = await this.#answered(() => this.#client.eval(script, 1, this.#base(queue), ...args))
    const [passed, taken] = Array.isArray(answer) ? (answer as [number, Taken[]]) : [0, []]
    return { passed, taken }
  }

  #base(queue: string): string {
    return `${this.#prefix}:${queue}:`
  }

  async #queues(): Promise<string[]> {
    const names = new Set<string>()
    const start = `${this.#prefix}:`
    const match = `${start.replaceAll(/[\\*?[\]]/g, '\\$&')}*:meta`
    let cursor = '0'
    do {
      const [next, keys] = await this.#answered(() => this.#client.scan(cursor, 'MATCH', match, 'COUNT', 1000))
      for (const key of keys) names.add(key.slice(start.length, -':meta'.length))
      cursor = next
    } while (cursor !== '0')
    return [...names].filter(isQueueName).sort()
  }
}
