/**
 * From where a process gets the jobs of one queue: a consumer per line, whose prefetch follows what its workers asked for. So RabbitMQ
 * sends jobs ahead of the next claim, but none that no slot is free for.
 *
 *   delivered ──► ready ──claim──► held ──► acknowledged
 *                   └─ nobody asks for it: goes back, without an attempt being counted
 *   the channel is lost: RabbitMQ gives all of them to others
 */
import type { Channel, ConsumeMessage } from 'amqplib'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimedJob, ClaimRequest, Hold, JobError } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { Lane } from './connection/link.ts'
import { bury, send, type StoreContext, totalsOf, valuesOf } from './context.ts'
import { toMillpondError } from './errors.ts'
import { FOREIGN, HEADER, type Line, priorityOf } from './names.ts'
import { type Arrived, arrivedOf, copyOf, deadLetter } from './wire.ts'

interface Consumer {
  tag: string
  prefetch: number
  /** Delivered to it and not acknowledged. */
  unacked: number
}

export interface Delivery extends Arrived {
  channel: Channel
  consumer: Consumer
  /** By our clock; 0: not claimed. */
  leaseUntil: number
}

/** In ms: a worker that is busy asks again sooner. */
const IDLE = 10
/** In ms: after that, a job that nobody has asked for goes to others. */
const PARKED = 100
const MAX_PREFETCH = 65_535
/** How often a claim looks whether jobs that wait have come. */
const LOOKS = 4

export class Source {
  readonly #context: StoreContext
  readonly #queue: string
  readonly #lane: Lane<Channel>
  /** By line; the cancelled ones live on in their deliveries. */
  readonly #consumers = new Map<Line, Consumer>()
  /** By id: ready and held. */
  readonly #deliveries = new Map<string, Delivery>()
  #ready: Delivery[] = []
  /** What workers would still take, by worker. */
  readonly #wanted = new Map<string, Pick<ClaimRequest, 'limit' | 'minPriority'>>()
  #fitting: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #trouble: MillpondError | undefined

  constructor(context: StoreContext, queue: string) {
    this.#context = context
    this.#queue = queue
    this.#lane = new Lane<Channel>(
      context.links.in,
      (model) => model.createChannel(),
      (_, why) => this.#lost(why),
    )
  }

  get held(): Delivery[] {
    return [...this.#deliveries.values()].filter(({ leaseUntil }) => leaseUntil > 0)
  }

  /** @throws StoreUnavailable, LeaseLost, Closed */
  async claim({ worker, limit, minPriority = 0 }: ClaimRequest, leaseUntil: number): Promise<ClaimedJob[]> {
    const trouble = this.#trouble
    this.#trouble = undefined
    if (trouble !== undefined) throw trouble
    this.#wanted.set(worker, { limit, minPriority })
    const channel = await this.#lane.get()
    await this.#fit(channel)
    if (this.#from(minPriority) < limit) await this.#look(channel, limit, minPriority)
    const taken = this.#take(limit, minPriority, leaseUntil)
    if (taken.length < limit) this.#wanted.set(worker, { limit: limit - taken.length, minPriority })
    else this.#wanted.delete(worker)
    this.#watch()
    return taken.map(({ job }) => job)
  }

  /** The claim, if it holds. */
  find({ id, fence }: Hold): Delivery | undefined {
    const delivery = this.#deliveries.get(id)
    return delivery !== undefined && delivery.leaseUntil > 0 && delivery.job.fence === fence ? delivery : undefined
  }

  /** These are over. A claim that was lost meanwhile is left alone. */
  acknowledge(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      if (this.#deliveries.get(delivery.job.id) !== delivery) continue
      this.#deliveries.delete(delivery.job.id)
      this.#ack(delivery)
    }
    this.#watch()
  }

  /** Resolves when RabbitMQ has read all that was acknowledged: it answers in order. @throws StoreUnavailable, Closed */
  async settled(): Promise<void> {
    await this.#lane.run((channel) => channel.prefetch(1))
  }

  /** Another line was made, or the queue is gone. */
  changed(): void {
    if (this.#demand() > 0) void this.#lane.get().then((channel) => this.#fit(channel), () => undefined)
  }

  /** Gives back what nobody has claimed. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#wanted.clear()
    await this.#giveBack()
  }

  #from(minPriority: number): number {
    return this.#ready.filter(({ job }) => job.priority >= minPriority).length
  }

  #demand(): number {
    let demand = -this.#ready.length
    for (const { limit } of this.#wanted.values()) demand += limit
    return demand
  }

  /** Lets each line deliver as many jobs as are wanted. */
  #fit(channel: Channel): Promise<void> {
    this.#fitting = this.#fitting.then(() => this.#open(channel))
    return this.#fitting
  }

  async #open(channel: Channel): Promise<void> {
    const wanted = Math.min(this.#demand(), MAX_PREFETCH)
    if (wanted <= 0) return
    const least = Math.min(...[...this.#wanted.values()].map(({ minPriority = 0 }) => minPriority))
    const { registry, settings } = this.#context
    const lines = [...registry.lines(this.#queue), ...(settings.foreign ? [FOREIGN] : [])]
    for (const line of lines.filter((each) => priorityOf(each) >= least)) {
      const open = this.#consumers.get(line)
      const free = open === undefined ? 0 : open.prefetch - open.unacked
      // A few less do no harm, and every change costs RabbitMQ a commit.
      if (free >= wanted || (this.#deliveries.size > 0 && free * 2 >= wanted)) continue
      await this.#consume(channel, line, wanted)
      if (open !== undefined) this.#cancel(channel, open)
    }
  }

  async #consume(channel: Channel, line: Line, prefetch: number): Promise<void> {
    const name = this.#context.names.line(this.#queue, line)
    // A consumer of a queue that is not there would cost the channel, and with it all claims.
    if ((await this.#context.topology.count(name)) === null) return
    const consumer: Consumer = { tag: '', prefetch, unacked: 0 }
    const take = (message: ConsumeMessage | null): void => this.#arrived(channel, line, consumer, message)
    // Both are sent at once: the prefetch is that of the next consumer.
    const opening = [channel.prefetch(prefetch), channel.consume(name, take)] as const
    const [, { consumerTag }] = await this.#context.links.in.inTime(Promise.all(opening))
    consumer.tag = consumerTag
    this.#consumers.set(line, consumer)
  }

  #cancel(channel: Channel, { tag }: Consumer): void {
    channel.cancel(tag).catch(() => undefined)
  }

  #arrived(channel: Channel, line: Line, consumer: Consumer, message: ConsumeMessage | null): void {
    if (message === null) {
      if (this.#consumers.get(line) === consumer) this.#consumers.delete(line)
      return
    }
    consumer.unacked++
    const now = this.#context.now()
    const arrived = arrivedOf(message, line, valuesOf(this.#context, this.#queue), now)
    const delivery: Delivery = { ...arrived, channel, consumer, leaseUntil: 0 }
    const { id, attempt, attempts } = arrived.job
    // A message that was published twice, since its confirm was lost.
    if (this.#deliveries.has(id)) return this.#ack(delivery)
    if (arrived.left > 0) return this.#move(delivery, () => this.#delayFurther(delivery))
    if (attempt > attempts) return this.#move(delivery, () => this.#lostTooOften(delivery))
    this.#deliveries.set(id, delivery)
    this.#ready.push(delivery)
    this.#context.bells.ring('work', this.#queue)
    this.#watch()
  }

  async #delayFurther(delivery: Delivery): Promise<void> {
    await send(this.#context, [copyOf(delivery, this.#queue, {}, delivery.left)])
  }

  async #lostTooOften(delivery: Delivery): Promise<void> {
    const { id, attempts } = delivery.job
    await this.bury([{ ...delivery, job: { ...delivery.job, attempt: attempts } }], LEASE_LOST)
    this.#context.lost.push({ id, queue: this.#queue, attempt: attempts, state: 'dead' })
  }

  /** For good. @throws StoreUnavailable, StoreFull, Closed */
  async bury(deliveries: readonly Delivery[], error: JobError): Promise<void> {
    const { keepDead } = valuesOf(this.#context, this.#queue)
    totalsOf(this.#context, this.#queue).dead += deliveries.length
    if (keepDead === 0) return
    const letters = deliveries.map((delivery) => {
      const parcel = copyOf(delivery, this.#queue, { [HEADER.attempt]: delivery.job.attempt })
      return deadLetter(this.#context.names, parcel, error, keepDead)
    })
    await bury(this.#context, this.#queue, letters)
  }

  /** Takes the message away once it is elsewhere; if that fails, RabbitMQ delivers it again. */
  #move(delivery: Delivery, act: () => Promise<void>): void {
    act().then(
      () => this.#ack(delivery),
      () => {
        delivery.consumer.unacked--
        attempt(() => delivery.channel.nack(delivery.message))
      },
    )
  }

  #ack({ channel, consumer, message }: Delivery): void {
    consumer.unacked--
    attempt(() => channel.ack(message))
  }

  /** What a line has may be on its way: its count tells, and an answer on the channel comes behind what was sent before. */
  async #look(channel: Channel, limit: number, minPriority: number): Promise<void> {
    const { names, registry, topology, settings, links } = this.#context
    for (let look = 0; look < LOOKS; look++) {
      const lines = [...registry.lines(this.#queue), ...(settings.foreign ? [FOREIGN] : [])]
      const open = lines.filter((line) => priorityOf(line) >= minPriority && this.#consumers.has(line))
      const counts = await Promise.all(open.map((line) => topology.count(names.line(this.#queue, line))))
      await links.in.inTime(channel.prefetch(1))
      if (this.#from(minPriority) >= limit || counts.every((count) => !count)) return
      if (this.#demand() <= 0) return
      await sleep(look)
    }
  }

  #take(limit: number, minPriority: number, leaseUntil: number): Delivery[] {
    this.#ready.sort((a, b) => b.job.priority - a.job.priority || a.place - b.place)
    const taken: Delivery[] = []
    const left: Delivery[] = []
    for (const delivery of this.#ready) {
      if (taken.length < limit && delivery.job.priority >= minPriority) taken.push(delivery)
      else left.push(delivery)
    }
    for (const delivery of taken) delivery.leaseUntil = leaseUntil
    this.#ready = left
    return taken
  }

  /** Nobody wants more now: if it stays so, the lines rest, and jobs that came nevertheless go back. */
  #watch(): void {
    if (this.#timer !== undefined || this.#demand() > 0) return
    const isFree = ({ prefetch, unacked }: Consumer): boolean => prefetch > unacked
    if (this.#ready.length === 0 && ![...this.#consumers.values()].some(isFree)) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#demand() > 0) return
      for (const [line, consumer] of this.#consumers) {
        if (!isFree(consumer)) continue
        this.#consumers.delete(line)
        void this.#lane.get().then((channel) => this.#cancel(channel, consumer), () => undefined)
      }
      if (this.#ready.length === 0) return
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        void this.#giveBack()
      }, PARKED).unref()
    }, IDLE).unref()
  }

  async #giveBack(): Promise<void> {
    const parked = this.#ready
    this.#ready = []
    if (parked.length === 0) return
    this.#wanted.clear()
    const parcels = parked.map((each) => copyOf(each, this.#queue, { [HEADER.attempt]: each.job.attempt - 1 }))
    // Those that cannot be moved now wait here for the next claim.
    await send(this.#context, parcels).then(
      () => this.acknowledge(parked),
      () => this.#ready.push(...parked.filter((each) => this.#deliveries.get(each.job.id) === each)),
    )
  }

  #lost(why: Error | undefined): void {
    const held = this.held
    this.#deliveries.clear()
    this.#ready = []
    this.#consumers.clear()
    totalsOf(this.#context, this.#queue).lost += held.length
    for (const { job } of held) {
      this.#context.lost.push({ id: job.id, queue: this.#queue, attempt: job.attempt, state: 'waiting' })
    }
    if (why !== undefined) this.#trouble = toMillpondError(why, this.#context.settings.where)
    // Workers ask for their claims at once, and stop what they run; then they claim again.
    this.#context.bells.ring('cancelled', this.#queue)
    this.#context.bells.ring('work', this.#queue)
  }
}

export const LEASE_LOST: JobError = {
  code: 'LeaseLost',
  name: 'MillpondError',
  message: 'its worker fell silent or was lost, and no attempt is left',
}

/** The channel may be gone already. Then RabbitMQ has taken the message back. */
function attempt(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (error instanceof MillpondError) throw error
  }
}
