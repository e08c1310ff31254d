/** A queue's settings, on all of its partitions. */
import { DEFAULT_BACKOFF } from '../../backoff.ts'
import { MillpondError } from '../../errors.ts'
import { type BackoffPolicy, type QueueSettings, setsNothing } from '../../store.ts'
import type { Partition } from './partition.ts'
import type { Shared } from './shared.ts'
import { pack } from './wire.ts'

export class Configured {
  readonly #shared: Shared
  /** What was set here, for a server that has lost it. */
  readonly #settings = new Map<string, QueueSettings>()
  readonly #restoring = new Set<string>()

  constructor(shared: Shared) {
    this.#shared = shared
  }

  /** @throws InvalidOption where the capacity is less than the partitions: each has its share */
  async configure(settings: QueueSettings): Promise<void> {
    const { link, queues, bells } = this.#shared
    link.assertOpen()
    if (setsNothing(settings)) return
    const { queue, capacity } = settings
    const partitions = await queues.create(queue)
    const count = partitions.length
    if (typeof capacity === 'number' && capacity < count) {
      const message = `capacity must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
      throw new MillpondError('InvalidOption', message, { queue })
    }
    await Promise.all(partitions.map((partition) => this.#send(partition, settings, count)))
    this.#settings.set(queue, { ...this.#settings.get(queue), ...settings })
    if (capacity !== undefined) bells.ring('room', queue)
    if (settings.paused === false) bells.ring('work', queue)
  }

  /** The server knows of no settings of this queue: it was emptied, or came back with less. What was set here is set again. */
  lost(queue: string): void {
    const settings = this.#settings.get(queue)
    if (settings === undefined || isDefault(settings) || this.#restoring.has(queue)) return
    this.#restoring.add(queue)
    const restored = this.configure(settings)
    // Whoever comes next with this queue tries again.
    restored.catch(() => undefined).finally(() => this.#restoring.delete(queue))
  }

  async #send(partition: Partition, settings: QueueSettings, count: number): Promise<void> {
    const { queue: _, backoff, capacity, ...rest } = settings
    const share =
      typeof capacity === 'number'
        ? Math.floor(capacity / count) + (partition.index < capacity % count ? 1 : 0)
        : capacity
    const policy = backoff && [backoff.base, backoff.factor, backoff.max, backoff.jitter]
    const given = Object.entries({ ...rest, capacity: share, backoff: policy }).filter(
      ([, value]) => value !== undefined,
    )
    const items = given.flatMap(([name, value]) => [name, pack(value)])
    const [listed] = await this.#shared.ask('configure', partition, [], items, { safe: true })
    if (listed === 0) await this.#shared.list(partition)
  }
}

/** Of a queue that was removed because nobody used it: it need not come back. */
function isDefault({
  capacity,
  keepDone,
  keepDead,
  paused,
  attempts,
  backoff,
  lease,
  timeout,
}: QueueSettings): boolean {
  const kept = (keepDone ?? 3_600_000) === 3_600_000 && (keepDead ?? 604_800_000) === 604_800_000
  const plain =
    (capacity ?? null) === null && paused !== true && (timeout ?? null) === null && isDefaultBackoff(backoff)
  return kept && plain && (attempts ?? 10) === 10 && (lease ?? 30_000) === 30_000
}

const isDefaultBackoff = (backoff: BackoffPolicy = DEFAULT_BACKOFF): boolean =>
  backoff.base === DEFAULT_BACKOFF.base &&
  backoff.factor === DEFAULT_BACKOFF.factor &&
  backoff.max === DEFAULT_BACKOFF.max &&
  backoff.jitter === DEFAULT_BACKOFF.jitter
