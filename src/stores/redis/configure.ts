/** A queue's settings, on all of its partitions. */
import { MillpondError } from '../../errors.ts'
import type { QueueSettings } from '../../store.ts'
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
    const { queue, capacity } = settings
    const partitions = await queues.create(queue)
    const count = partitions.length
    if (typeof capacity === 'number' && capacity < count) {
      const message = `capacity must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
      throw new MillpondError('InvalidOption', message, { queue })
    }
    await Promise.all(partitions.map((partition) => this.#send(partition, settings, count)))
    this.#settings.set(queue, { ...this.#settings.get(queue), ...settings })
    if (capacity !== undefined) bells.room(queue)
    if (settings.paused === false) bells.work(queue)
  }

  /** The server knows of no settings of this queue: it was emptied, or came back with less. What was set here is set again. */
  lost(queue: string): void {
    const settings = this.#settings.get(queue)
    if (settings === undefined || this.#restoring.has(queue)) return
    this.#restoring.add(queue)
    const restored = this.#shared.queues.restore(queue).then(() => this.configure(settings))
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
    await this.#shared.ask('configure', partition, [], items, { safe: true })
  }
}
