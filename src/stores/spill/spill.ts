/** All that a spilling store holds. */
import type { Bell } from '../../store.ts'
import { isFront, ownerOf } from './names.ts'
import { HIGHEST, NONE, SpilledQueue, type Stores } from './spilled-queue.ts'

export class Spill {
  readonly stores: Stores
  /** Those of which the durable store has, or may have, any jobs. */
  readonly queues = new Map<string, SpilledQueue>()
  /** `performance.now()` of the last take that failed, and of the last look. */
  failedAt = Number.NEGATIVE_INFINITY
  lookedAt = Number.NEGATIVE_INFINITY

  constructor(stores: Stores) {
    this.stores = stores
  }

  queue(name: string): SpilledQueue {
    const queue = this.queues.get(name) ?? new SpilledQueue(name, this.stores)
    this.queues.set(name, queue)
    return queue
  }

  /** The durable store keeps the queue's finished jobs for as long as memory does, and groups take turns in both. */
  async tell(queue: SpilledQueue): Promise<void> {
    if (queue.told) return
    const { keepDone, keepDead, grouped } = this.stores.state.findOrCreate(queue.name).settings
    const isGrouped = grouped && this.stores.durable.capabilities.groups
    queue.told = true
    try {
      const change = { queue: queue.name, keepDone, keepDead, ...(isGrouped && { grouped }) }
      await this.stores.durable.operations.configure(change)
    } catch (error) {
      queue.told = false
      throw error
    }
  }

  /** Asks the durable store which jobs it has. */
  async look(): Promise<void> {
    this.lookedAt = performance.now()
    const pushes = new Map([...this.queues].map(([name, queue]) => [name, queue.pushes]))
    const all = await this.stores.durable.operations.stats({})
    const filled = new Set<string>()
    for (const { queue: name, counts } of all) {
      if (Object.values(counts).every((count) => count === 0)) continue
      const owner = ownerOf(name)
      filled.add(owner)
      const queue = this.queue(owner)
      queue.scheduled ||= counts.scheduled > 0
      if (counts.waiting > 0) this.waits(name)
    }
    for (const [name, queue] of this.queues) {
      const isSame = pushes.get(name) === queue.pushes && !queue.isPushing
      if (isSame && queue.taking === undefined && !filled.has(name)) this.queues.delete(name)
    }
  }

  /** Jobs wait in this queue of the durable store, of whatever priority. */
  waits(name: string): void {
    const queue = this.queue(ownerOf(name))
    if (isFront(name)) queue.front = true
    else if (queue.highest === NONE) queue.highest = HIGHEST
    this.stores.state.bells.ring('work', queue.name)
  }

  /** A job was changed, of some queue. */
  changed(): void {
    for (const queue of this.queues.values()) {
      queue.highest = HIGHEST
      this.stores.state.bells.ring('work', queue.name)
    }
  }

  heard(bell: Bell): void {
    const { bells } = this.stores.state
    if (bell.kind === 'work') this.waits(bell.queue)
    else if (bell.kind !== 'room') {
      const { kind, queue, ids } = bell
      if (ids === undefined) bells.ring(kind, ownerOf(queue))
      else for (const id of ids) bells.ring(kind, ownerOf(queue), id)
    }
  }
}
