/**
 * From where a process gets the jobs of one queue: consumers of its lines, whose prefetch follows what the workers asked for. So RabbitMQ
 * sends jobs ahead of the next claim, but no more than slots are free for.
 *
 *   delivered ──► ready ──claim──► held ──► acknowledged
 *                   └─ nobody asks for it: goes back, without an attempt being counted
 *   the channel is lost: RabbitMQ gives all of them to others
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, ConsumeMessage } from 'amqplib'
import type { ClaimedJob, ClaimRequest, Hold, Totals } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { StandingChannel } from './connection/standing-channel.ts'
import { toMillpondError } from './errors.ts'
import { HEADER, type Line, priorityOf } from './names.ts'
import { bury, LEASE_LOST, sendBack, type Traffic } from './traffic.ts'
import { type Arrived, arrivedOf, copyOf } from './wire.ts'

interface Consumer {
  line: Line
  tag: string
  take: (message: ConsumeMessage | null) => void
  prefetch: number
  /** Delivered to it and not acknowledged. */
  unacked: number
}

export interface Delivery extends Arrived {
  channel: Channel
  consumer: Consumer
  /** By our clock; 0: not claimed. */
  leaseUntil: number
  /** By `performance.now()`. */
  readonly arrivedAt: number
  /** It is being moved, or its claim is being ended. */
  isEnding: boolean
}

export interface Held<Item> {
  item: Item
  delivery: Delivery
}

/** Ms until consumers rest that nobody asks for, and until jobs go back that nobody claims. A busy worker asks again sooner. */
const IDLE = 100
const MAX_PREFETCH = 65_535

export class Source {
  readonly #traffic: Traffic
  readonly #queue: string
  readonly #channel: StandingChannel<Channel>
  #consumers: Consumer[] = []
  /** Not acknowledged, in the order of delivery, by tag. */
  readonly #deliveries = new Map<number, Delivery>()
  /** The latest of each job. While a job is moved, its copy may come before the message that it replaces is acknowledged. */
  readonly #byId = new Map<string, Delivery>()
  #ready: Delivery[] = []
  /** What claims that are under way would take, and what the last ones left open, by worker. */
  readonly #wanted = new Map<string | symbol, Pick<ClaimRequest, 'limit' | 'minPriority'>>()
  #fitting: Promise<unknown> = Promise.resolve()
  #isWatching = false
  /** Jobs may be on their way here that a claim has to give. */
  #mayMiss = true
  #trouble: MillpondError | undefined
  /** What this process did. */
  readonly totals: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }

  constructor(traffic: Traffic, queue: string) {
    this.#traffic = traffic
    this.#queue = queue
    const open = (model: { createChannel(): Promise<Channel> }): Promise<Channel> => model.createChannel()
    this.#channel = new StandingChannel<Channel>(traffic.links.in, open, (why) => this.#lost(why))
  }

  get held(): Delivery[] {
    return [...this.#deliveries.values()].filter(({ leaseUntil }) => leaseUntil > 0)
  }

  /** Whether what is pushed is sent here by itself. */
  get isConsuming(): boolean {
    return this.#consumers.length > 0
  }

  /** How many jobs were delivered and not claimed. @throws StoreUnavailable, Closed */
  async parked(): Promise<number> {
    if (this.isConsuming) await this.settled()
    return this.#ready.length
  }

  /** @throws StoreUnavailable, LeaseLost, Closed */
  async claim({ worker, limit, minPriority = 0 }: ClaimRequest, leaseUntil: number): Promise<ClaimedJob[]> {
    const trouble = this.#trouble
    this.#trouble = undefined
    if (trouble !== undefined) throw trouble
    // It replaces what the worker's last claim left open, and adds to what other claims want now.
    const claim = Symbol(worker)
    this.#wanted.delete(worker)
    this.#wanted.set(claim, { limit, minPriority })
    try {
      await this.#fit(await this.#channel.get())
      // What was pushed before the claim was sent to us before the answer to a call on the same channel.
      if (this.#readyFrom(minPriority) === 0 || this.#mayMiss) await this.settled()
    } finally {
      this.#wanted.delete(claim)
    }
    const taken = this.#take(limit, minPriority, leaseUntil)
    if (taken.length < limit) this.#wanted.set(worker, { limit: limit - taken.length, minPriority })
    this.#watch()
    return taken.map(({ job }) => job)
  }

  /** The claim, if it holds. */
  find({ id, fence }: Hold): Delivery | undefined {
    const delivery = this.#byId.get(id)
    return delivery !== undefined && delivery.leaseUntil > 0 && delivery.job.fence === fence ? delivery : undefined
  }

  /**
   * Ends the claims that hold, each once: `act` puts their jobs elsewhere, then RabbitMQ forgets their messages. If `act` fails, they hold
   * as before.
   * @returns what `act` says of each; `stale`: it does not hold, another call ends it, or it was lost meanwhile
   */
  async end<Item extends Hold, Outcome>(
    items: readonly Item[],
    act: (held: Held<Item>[]) => Promise<Outcome[]>,
  ): Promise<(Outcome | 'stale')[]> {
    const held = new Map<number, Held<Item>>()
    for (const [index, item] of items.entries()) {
      const delivery = this.find(item)
      if (delivery === undefined || delivery.isEnding) continue
      delivery.isEnding = true
      held.set(index, { item, delivery })
    }
    const outcomes: (Outcome | 'stale')[] = items.map(() => 'stale')
    if (held.size === 0) return outcomes
    const deliveries = [...held.values()].map(({ delivery }) => delivery)
    const acted = await act([...held.values()]).catch((error: unknown) => {
      for (const delivery of deliveries) delivery.isEnding = false
      throw error
    })
    for (const [index, { delivery }] of held) {
      const outcome = acted.shift()
      if (outcome !== undefined && this.#isOpen(delivery)) outcomes[index] = outcome
    }
    this.#acknowledge(deliveries)
    await this.settled()
    if (!this.isConsuming) this.#traffic.bells.ring('work', this.#queue)
    return outcomes
  }

  /** This process has put a job into the queue. A claim that follows gives it, so it waits until it is here. */
  pushed(): void {
    this.totals.pushed++
    this.#mayMiss = true
    if (!this.isConsuming) this.#traffic.bells.ring('work', this.#queue)
  }

  /** Resolves when RabbitMQ has read all that was acknowledged: it answers in order. @throws StoreUnavailable, Closed */
  async settled(): Promise<void> {
    this.#mayMiss = false
    await this.#channel.run((channel) => channel.prefetch(1))
  }

  /** Another line was made. */
  changed(): void {
    if (this.#demand() <= 0) return
    this.#channel.get().then(
      (channel) => this.#fit(channel),
      () => undefined,
    )
  }

  /** Gives back what nobody has claimed. */
  async close(): Promise<void> {
    this.#wanted.clear()
    await this.#putBack()
  }

  #readyFrom(minPriority: number): number {
    return this.#ready.filter(({ job }) => job.priority >= minPriority).length
  }

  /** How many more jobs the workers want than are ready. */
  #demand(): number {
    let demand = -this.#ready.length
    for (const { limit } of this.#wanted.values()) demand += limit
    return demand
  }

  #fit(channel: Channel): Promise<unknown> {
    const fitting = this.#fitting.then(() => this.#openConsumers(channel))
    this.#fitting = fitting.catch(() => undefined)
    return fitting
  }

  /**
   * Lets each line deliver as many jobs as are wanted. Jobs that came from a line do not count for those before it: there, jobs may wait
   * that go first.
   */
  async #openConsumers(channel: Channel): Promise<void> {
    const { queues, settings } = this.#traffic
    const least = Math.min(...[...this.#wanted.values()].map(({ minPriority = 0 }) => minPriority))
    let wanted = Math.min(this.#demand() + this.#ready.length, MAX_PREFETCH)
    for (const line of queues.linesOf(this.#queue, settings.foreign)) {
      if (priorityOf(line) < least) continue
      wanted -= this.#ready.filter(({ consumer }) => consumer.line === line).length
      const own = this.#consumers.filter((each) => each.line === line)
      const free = own.reduce((sum, { prefetch, unacked }) => sum + prefetch - unacked, 0)
      // A few less do no harm, and every consumer costs RabbitMQ a commit.
      if (free >= wanted || (this.#deliveries.size > 0 && free * 2 >= wanted)) continue
      await this.#consume(channel, line, wanted - free)
    }
  }

  async #consume(channel: Channel, line: Line, prefetch: number): Promise<void> {
    const { names, topology, links } = this.#traffic
    const name = names.line(this.#queue, line)
    // A consumer of a queue that is not there would cost the channel, and with it all claims.
    if ((await topology.count(name)) === null) return
    const take = (message: ConsumeMessage | null): void => this.#arrived(channel, consumer, message)
    const consumer: Consumer = { line, tag: randomUUID(), take, prefetch, unacked: 0 }
    this.#consumers.push(consumer)
    this.#mayMiss = true
    // Both are sent at once: the prefetch is that of the next consumer.
    const options = { consumerTag: consumer.tag }
    await links.in.inTime(Promise.all([channel.prefetch(prefetch), channel.consume(name, take, options)]))
  }

  #arrived(channel: Channel, consumer: Consumer, message: ConsumeMessage | null): void {
    if (message === null) {
      this.#consumers = this.#consumers.filter((each) => each !== consumer)
      return
    }
    const { queues, now, bells } = this.#traffic
    const arrived = arrivedOf(message, consumer.line, queues.of(this.#queue).values, now())
    const arrivedAt = performance.now()
    const delivery: Delivery = { ...arrived, channel, consumer, leaseUntil: 0, arrivedAt, isEnding: false }
    const { id } = delivery.job
    const before = this.#byId.get(id)
    // It was pushed twice, since the answer to the first push was lost.
    if (before !== undefined && !before.isEnding) {
      ack(delivery)
      return
    }
    this.#deliveries.set(message.fields.deliveryTag, delivery)
    this.#byId.set(id, delivery)
    consumer.unacked++
    if (delivery.remaining > 0 || delivery.isLost) {
      this.#move(delivery)
      return
    }
    this.#ready.push(delivery)
    bells.ring('work', this.#queue)
    this.#watch()
  }

  /** Puts a job elsewhere that nobody may claim. If that fails, RabbitMQ delivers it again. */
  async #move(delivery: Delivery): Promise<void> {
    const { id, attempt } = delivery.job
    delivery.isEnding = true
    try {
      if (delivery.isLost) {
        await bury(this.#traffic, this.#queue, [[delivery, LEASE_LOST]], this.totals)
        this.#traffic.lost.push({ id, queue: this.#queue, attempt, state: 'dead' })
      } else await sendBack(this.#traffic, [copyOf(delivery, this.#queue, {}, delivery.remaining)])
      this.#acknowledge([delivery])
    } catch {
      this.#forget(delivery)
      onChannel(() => delivery.channel.nack(delivery.message))
    }
  }

  /** These are over. One that was lost meanwhile is left alone. */
  #acknowledge(deliveries: readonly Delivery[]): void {
    const over = new Set(deliveries.filter((each) => this.#isOpen(each)))
    let upTo: Delivery | undefined
    // Those before which none is open are acknowledged as one.
    for (const delivery of this.#deliveries.values()) {
      if (!over.delete(delivery)) break
      upTo = delivery
      this.#forget(delivery)
    }
    if (upTo !== undefined) ack(upTo, true)
    for (const delivery of over) {
      this.#forget(delivery)
      ack(delivery)
    }
    this.#watch()
  }

  #isOpen(delivery: Delivery): boolean {
    return this.#deliveries.get(delivery.message.fields.deliveryTag) === delivery
  }

  #forget(delivery: Delivery): void {
    if (!this.#isOpen(delivery)) return
    this.#deliveries.delete(delivery.message.fields.deliveryTag)
    if (this.#byId.get(delivery.job.id) === delivery) this.#byId.delete(delivery.job.id)
    delivery.consumer.unacked--
  }

  #take(limit: number, minPriority: number, leaseUntil: number): Delivery[] {
    this.#ready.sort((a, b) => b.job.priority - a.job.priority || a.place - b.place)
    // The highest priorities come first.
    const taken = this.#ready.splice(0, Math.min(limit, this.#readyFrom(minPriority)))
    for (const delivery of taken) delivery.leaseUntil = leaseUntil
    return taken
  }

  /** Once nobody has wanted more for a while, the consumers rest, and jobs that nobody has claimed for as long go back. */
  #watch(): void {
    if (this.#isWatching || this.#demand() > 0) return
    if (this.#ready.length === 0 && !this.#consumers.some(hasFree)) return
    this.#isWatching = true
    void this.#rest().finally(() => {
      this.#isWatching = false
      this.#watch()
    })
  }

  async #rest(): Promise<void> {
    await sleep(IDLE, undefined, { ref: false })
    if (this.#demand() > 0) return
    const idle = this.#consumers.filter(hasFree)
    this.#consumers = this.#consumers.filter((each) => !hasFree(each))
    await Promise.allSettled(idle.map((each) => this.#cancel(each)))
    if (this.#demand() <= 0) await this.#putBack(performance.now() - IDLE)
  }

  /**
   * RabbitMQ may send what was under way after it has confirmed the end of a consumer, until it answers the next call. amqplib ends the
   * connection on a message without a consumer, and with it all claims.
   */
  async #cancel({ tag, take }: Consumer): Promise<void> {
    await this.#channel.run(async (channel) => {
      await channel.cancel(tag)
      const consumers: unknown = Reflect.get(channel, 'consumers')
      if (!(consumers instanceof Map)) return
      consumers.set(tag, take)
      await channel.prefetch(1)
      consumers.delete(tag)
    })
  }

  /** Those that cannot be moved now wait here for the next claim. @param before only those that arrived by then */
  async #putBack(before = Number.POSITIVE_INFINITY): Promise<void> {
    const parked = this.#ready.filter(({ arrivedAt }) => arrivedAt <= before)
    if (parked.length === 0) return
    this.#ready = this.#ready.filter(({ arrivedAt }) => arrivedAt > before)
    for (const each of parked) each.isEnding = true
    const unclaimed = ({ job }: Delivery) => ({ [HEADER.attempt]: job.attempt - 1, [HEADER.fence]: job.fence - 1 })
    try {
      await sendBack(
        this.#traffic,
        parked.map((each) => copyOf(each, this.#queue, unclaimed(each))),
      )
      this.#acknowledge(parked)
    } catch {
      for (const each of parked) each.isEnding = false
      this.#ready.push(...parked.filter((each) => this.#isOpen(each)))
    }
  }

  #lost(why: Error | undefined): void {
    const { lost, settings, bells } = this.#traffic
    const queue = this.#queue
    for (const { job } of this.held) {
      this.totals.lost++
      lost.push({ id: job.id, queue, attempt: job.attempt, state: 'waiting' })
    }
    this.#deliveries.clear()
    this.#byId.clear()
    this.#ready = []
    this.#consumers = []
    if (why !== undefined) this.#trouble = toMillpondError(why, settings.where)
    // Workers ask for their claims at once, and stop what they run. Then they claim again.
    bells.ring('cancelled', queue)
    bells.ring('work', queue)
  }
}

const ack = ({ channel, message }: Delivery, upTo = false): void => onChannel(() => channel.ack(message, upTo))
const hasFree = ({ prefetch, unacked }: Consumer): boolean => prefetch > unacked

/** The channel may be gone already. Then RabbitMQ has taken the message back. */
function onChannel(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (error instanceof MillpondError) throw error
  }
}
