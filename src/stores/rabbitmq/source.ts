/**
 * From where a process gets the jobs of one queue: consumers of its lines, whose prefetch follows what the workers asked for. So RabbitMQ
 * sends jobs ahead of the next claim, but no more than slots are free for.
 *
 *   delivered ──► ready ──claim──► held ──► acknowledged
 *                   │ ▲              └─ a message of another program is tried again: waits here for its delay
 *                   │ └──────────────────────┘
 *                   └─ nobody asks for it: goes back, without an attempt being counted
 *   the channel is lost: RabbitMQ gives all of them to others
 *
 * The store fails by closing. Where nobody knows whether the copy of a job was stored, the connection is closed: all claims are lost,
 * and no state outlives the doubt. Messages of other programs are given back to their own queue, and copied only when they are dead.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, ConsumeMessage } from 'amqplib'
import { isMillpondError, type MillpondError } from '../../values/errors/errors.ts'
import type { ClaimRequest, Hold } from '../../values/jobs/records.ts'
import type { Totals } from '../../values/operations/requests.ts'
import { isError } from '../../values/runtime/realms.ts'
import { StandingChannel } from './connection/standing-channel.ts'
import { isDenied, toMillpondError } from './errors.ts'
import { FOREIGN, HEADER, type Line, priorityOf } from './names.ts'
import { sendBack, type Traffic } from './traffic.ts'
import { type Arrived, arrivedOf, copyOf } from './wire.ts'

interface Consumer {
  line: Line
  tag: string
  prefetch: number
  /** Delivered to it and not acknowledged. */
  unacked: number
  opened: Promise<void>
}

export interface Delivery extends Arrived {
  consumer: Consumer
  /** By our clock; 0: not claimed. */
  leaseUntil: number
  /** By `performance.now()`. Later for one that waits here for its next attempt. */
  arrivedAt: number
  /** It is being moved, or its claim is being ended. */
  isEnding: boolean
  /** What becomes of the message when its claim ends. */
  after: AfterClaim
  /** Its copy, which came before the claim has ended. Nobody gets it before: if the end is in doubt, both are lost. */
  copy?: Delivery
}

/** RabbitMQ forgets it or gives it to anybody; the claim holds on; or, as a number, it waits here for so many ms. */
type AfterClaim = 'forget' | 'giveBack' | 'keep' | number

export interface Held<Item> {
  item: Item
  delivery: Delivery
}

/** Ms until consumers rest that nobody asks for, and until jobs go back that nobody claims. A busy worker asks again sooner. */
const IDLE = 100
const MAX_PREFETCH = 65_535
/** Ms for which jobs are fetched for a worker that has not asked again: it is busy or gone. One that waits asks every second. */
const PATIENCE = 3000
/**
 * Most ms that a message waits here for its next attempt, and then for a claim. RabbitMQ takes back what is not acknowledged within
 * its consumer_timeout.
 */
const LONGEST_STAY = 300_000
/** Ms until a queue of another program that RabbitMQ denied us is tried again. */
const REFUSED_PAUSE = 10_000
/** Ms that a source which closes waits for what is on its way to it. */
const CLOSE_PAUSE = 1000

export class Source {
  readonly #traffic: Traffic
  readonly queue: string
  readonly #channel: StandingChannel<Channel>
  /** Of the queue of another program, so that what happens to that queue does not end the claims of our jobs. */
  readonly #foreign: StandingChannel<Channel>
  readonly #consumers = new Set<Consumer>()
  /** Not acknowledged, in the order of delivery. */
  readonly #deliveries = new Set<Delivery>()
  /** One of each job. */
  readonly #byId = new Map<string, Delivery>()
  readonly #ready = new Set<Delivery>()
  /** What claims that are under way would take, and what the last ones left open, by worker. */
  readonly #wanted = new Map<string | symbol, { limit: number; minPriority: number; until: number }>()
  #isWatching = false
  #isClosing = false
  /** By `performance.now()`: until then, the queue of another program is left alone. */
  #refusedUntil = 0
  #trouble: MillpondError | undefined
  /** What this process did. */
  readonly totals: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }

  constructor(traffic: Traffic, queue: string) {
    this.#traffic = traffic
    this.queue = queue
    const open = (model: { createChannel(): Promise<Channel> }): Promise<Channel> => model.createChannel()
    this.#channel = new StandingChannel<Channel>(traffic.links.in, open, (why) => this.#lost(why, false))
    this.#foreign = new StandingChannel<Channel>(traffic.links.in, open, (why) => this.#lost(why, true))
  }

  get held(): Delivery[] {
    return [...this.#deliveries].filter(({ leaseUntil }) => leaseUntil > 0)
  }

  /** How many jobs were delivered and not claimed. @throws StoreUnavailable, Closed */
  async parked(): Promise<number> {
    if (this.#consumers.size > 0) await this.settled()
    return this.#ready.size
  }

  /** @throws StoreUnavailable, LeaseLost, Closed */
  async claim({ worker, limit, minPriority = 0 }: ClaimRequest, leaseUntil: number): Promise<Delivery[]> {
    const trouble = this.#trouble
    this.#trouble = undefined
    if (trouble !== undefined) throw trouble
    // It replaces what the worker's last claim left open, and adds to what other claims want now.
    const claim = Symbol(worker)
    this.#wanted.delete(worker)
    this.#wanted.set(claim, { limit, minPriority, until: Number.POSITIVE_INFINITY })
    try {
      await this.#fit()
      // What was pushed before the claim was sent to us before the answer to a call on the same channel.
      await this.settled()
    } finally {
      this.#wanted.delete(claim)
    }
    const taken = [...this.#ready]
      .filter(({ job }) => job.priority >= minPriority)
      .sort((a, b) => b.job.priority - a.job.priority || a.place - b.place)
      .slice(0, limit)
    for (const delivery of taken) {
      delivery.leaseUntil = leaseUntil
      this.#ready.delete(delivery)
    }
    if (taken.length < limit) {
      this.#wanted.set(worker, { limit: limit - taken.length, minPriority, until: performance.now() + PATIENCE })
      setTimeout(() => this.#watch(), PATIENCE + 1).unref()
    }
    this.#watch()
    return taken
  }

  /** The claim, if it holds. */
  find({ id, fence }: Hold): Delivery | undefined {
    const delivery = this.#byId.get(id)
    return delivery !== undefined && delivery.leaseUntil > 0 && delivery.job.fence === fence ? delivery : undefined
  }

  /**
   * Ends the claims that hold, each once: `act` puts their jobs elsewhere, then RabbitMQ forgets their messages. If `act` fails before
   * it stored anything, they hold as before. If it may have stored something, the connection is closed.
   * @param act resolves to what is said of each
   * @returns `stale`: it does not hold, another call ends it, or it was lost meanwhile
   */
  async end<Item extends Hold, Outcome>(
    items: readonly Item[],
    act: (held: Held<Item>[]) => Promise<(held: Held<Item>) => Outcome>,
  ): Promise<(Outcome | 'stale')[]> {
    const found = items.map((item): Held<Item> | undefined => {
      const delivery = this.find(item)
      if (delivery === undefined || delivery.isEnding) return undefined
      Object.assign(delivery, { isEnding: true, after: 'forget' })
      return { item, delivery }
    })
    const held = found.filter((each) => each !== undefined)
    if (held.length === 0) return items.map(() => 'stale')
    const outcomeOf = await act(held).catch((error: unknown) => {
      for (const { delivery } of held) delivery.isEnding = false
      this.#closeIfInDoubt(error)
      throw error
    })
    const ended = await this.#acknowledge(held.map(({ delivery }) => delivery))
    if (this.#consumers.size === 0) this.#traffic.bells.ring('work', this.queue)
    for (const { delivery } of held) if (delivery.after === 'keep') delivery.isEnding = false
    return found.map((each) => (each !== undefined && ended.has(each.delivery) ? outcomeOf(each) : 'stale'))
  }

  /** This process has put a job into the queue. */
  pushed(): void {
    this.totals.pushed++
    // What is pushed is sent to consumers by itself.
    if (this.#consumers.size === 0) this.#traffic.bells.ring('work', this.queue)
  }

  /** Resolves when RabbitMQ has read all that was sent before: it answers in order. @throws StoreUnavailable, Closed */
  async settled(): Promise<void> {
    const hasForeign = [...this.#consumers].some(({ line }) => line === FOREIGN)
    const channels = hasForeign ? [this.#channel, this.#foreign] : [this.#channel]
    await Promise.all(channels.map((each) => each.run((channel) => channel.prefetch(1))))
  }

  /** Another line was made. */
  changed(): void {
    if (this.#demand() > 0) this.#fit().catch(() => undefined)
  }

  /** Gives back what nobody has claimed. Consumers end first: otherwise RabbitMQ sends more, and counts it as attempts. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#wanted.clear()
    const end = performance.now() + CLOSE_PAUSE
    for (const each of this.#consumers) {
      await each.opened
      while (!(await this.#cancel(each, performance.now() > end))) await sleep(1)
    }
    for (const each of this.#deliveries) if (each.leaseUntil === 0 && !each.isEnding) this.#ready.add(each)
    await this.#putBack(Number.POSITIVE_INFINITY)
  }

  /** How many more jobs the workers want than are ready. */
  #demand(): number {
    let demand = -this.#ready.size
    for (const [worker, { limit, until }] of this.#wanted) {
      if (until > performance.now()) demand += limit
      else this.#wanted.delete(worker)
    }
    return demand
  }

  /**
   * Lets each line deliver as many jobs as are wanted. Jobs that came from a line do not count for those before it: there, jobs may wait
   * that go first.
   */
  async #fit(): Promise<void> {
    if (this.#isClosing) return
    const { queues, settings } = this.#traffic
    const least = Math.min(...[...this.#wanted.values()].map(({ minPriority }) => minPriority))
    let wanted = Math.min(this.#demand() + this.#ready.size, MAX_PREFETCH)
    for (const line of queues.linesOf(this.queue, settings.foreign)) {
      if (priorityOf(line) < least || (line === FOREIGN && performance.now() < this.#refusedUntil)) continue
      for (const { consumer } of this.#ready) if (consumer.line === line) wanted--
      let free = 0
      for (const each of this.#consumers) if (each.line === line) free += each.prefetch - each.unacked
      if (free < wanted) this.#consume(line, wanted - free)
    }
    await Promise.all([...this.#consumers].map(({ opened }) => opened))
  }

  #consume(line: Line, prefetch: number): void {
    const consumer: Consumer = { line, tag: randomUUID(), prefetch, unacked: 0, opened: Promise.resolve() }
    this.#consumers.add(consumer)
    consumer.opened = this.#open(consumer).catch((error: unknown) => {
      this.#consumers.delete(consumer)
      if (line !== FOREIGN || !isDenied(error)) throw error
      // Its owner consumes it alone, or we lack the right. Our own jobs go on; the next claim says so.
      this.#refusedUntil = performance.now() + REFUSED_PAUSE
    })
  }

  async #open(consumer: Consumer): Promise<void> {
    const { line, tag: consumerTag, prefetch } = consumer
    const name = this.#traffic.names.line(this.queue, line)
    // A consumer of a queue that is not there would cost the channel, and with it all claims.
    if ((await this.#traffic.topology.count(name)) === null) this.#consumers.delete(consumer)
    if (!this.#consumers.has(consumer)) return
    const take = (message: ConsumeMessage | null): void => this.#arrived(consumer, message)
    // Both are sent at once: the prefetch is that of the next consumer.
    await this.#channelOf(line === FOREIGN).run((channel) =>
      Promise.all([channel.prefetch(prefetch), channel.consume(name, take, { consumerTag })]),
    )
  }

  /** @param message null: the queue is gone, and with it its consumers */
  #arrived(consumer: Consumer, message: ConsumeMessage | null): void {
    if (message === null) {
      this.#consumers.delete(consumer)
      return
    }
    const { queues, now } = this.#traffic
    const arrived = arrivedOf(message, consumer.line, queues.of(this.queue).values, now())
    const arrivedAt = performance.now()
    const delivery: Delivery = { ...arrived, consumer, leaseUntil: 0, arrivedAt, isEnding: false, after: 'forget' }
    const { id } = delivery.job
    const before = this.#byId.get(id)
    this.#deliveries.add(delivery)
    consumer.unacked++
    // It was pushed twice, since the answer to the first push was lost.
    if (before !== undefined && (!before.isEnding || before.copy !== undefined)) {
      this.#acknowledge([delivery]).catch(() => undefined)
      return
    }
    if (before === undefined) this.#offer(delivery)
    else before.copy = delivery
  }

  #offer(delivery: Delivery): void {
    if (!this.#deliveries.has(delivery)) return
    this.#byId.set(delivery.job.id, delivery)
    this.#ready.add(delivery)
    this.#traffic.bells.ring('work', this.queue)
    this.#watch()
  }

  /** These are over. @returns those that were not lost meanwhile, once RabbitMQ has read it. @throws StoreUnavailable, Closed */
  async #acknowledge(deliveries: readonly Delivery[]): Promise<Set<Delivery>> {
    const sides = [false, true].map((isForeign) => deliveries.filter((each) => each.isForeign === isForeign))
    const ended = await Promise.all(sides.map((side) => this.#settle(side)))
    this.#watch()
    return new Set(ended.flat())
  }

  /** @param deliveries of one channel */
  async #settle(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    const [{ isForeign } = { isForeign: undefined }] = deliveries
    if (isForeign === undefined) return []
    return this.#channelOf(isForeign).run(async (channel) => {
      const open = deliveries.filter((each) => this.#deliveries.has(each))
      const done = open.filter(({ after }) => after === 'forget')
      for (const delivery of open) {
        if (delivery.after === 'keep') continue
        if (typeof delivery.after === 'number') this.#again(delivery, delivery.after)
        else this.#forget(delivery)
        if (delivery.after === 'giveBack') channel.nack(delivery.message, false, true)
      }
      const messages = done.map(({ message }) => message).sort((a, b) => tagOf(a) - tagOf(b))
      // Those before which none is open are acknowledged as one.
      const oldest = this.#oldest(isForeign)
      const first = messages.filter((message) => tagOf(message) < oldest)
      const last = first.at(-1)
      if (last !== undefined) channel.ack(last, true)
      for (const message of messages.slice(first.length)) channel.ack(message)
      await channel.prefetch(1)
      return open
    })
  }

  /** The tag of the oldest open delivery of a channel. */
  #oldest(isForeign: boolean): number {
    for (const each of this.#deliveries) if (each.isForeign === isForeign) return tagOf(each.message)
    return Number.POSITIVE_INFINITY
  }

  #channelOf(isForeign: boolean): StandingChannel<Channel> {
    return isForeign ? this.#foreign : this.#channel
  }

  /** It waits here for its next attempt. A busy worker gets time to claim it: RabbitMQ does not know of its attempts. */
  #again(delivery: Delivery, delay: number): void {
    const { job } = delivery
    const stay = Math.min(delay, LONGEST_STAY)
    delivery.job = { ...job, attempt: job.attempt + 1, fence: job.fence + 1, dueAt: this.#traffic.now() + stay }
    delivery.arrivedAt = performance.now() + stay + LONGEST_STAY
    Object.assign(delivery, { leaseUntil: 0, isEnding: false, after: 'forget' })
    setTimeout(() => this.#offer(delivery), stay).unref()
  }

  #forget(delivery: Delivery): void {
    this.#deliveries.delete(delivery)
    if (this.#byId.get(delivery.job.id) === delivery) this.#byId.delete(delivery.job.id)
    delivery.consumer.unacked--
    if (delivery.copy !== undefined) this.#offer(delivery.copy)
  }

  /** Once nobody has wanted more for a while, the consumers rest, and jobs that nobody has claimed for as long go back. */
  #watch(): void {
    if (this.#isWatching || this.#demand() > 0) return
    if (this.#ready.size === 0 && ![...this.#consumers].some(hasFree)) return
    this.#isWatching = true
    const rest = this.#rest().catch(() => undefined)
    void rest.then(() => {
      this.#isWatching = false
      this.#watch()
    })
  }

  async #rest(): Promise<void> {
    await sleep(IDLE, undefined, { ref: false })
    const before = performance.now() - IDLE
    const parking = new Set([...this.#ready].flatMap((each) => (each.arrivedAt <= before ? each.consumer : [])))
    for (const each of this.#consumers) {
      if (this.#demand() <= 0 && (hasFree(each) || parking.has(each))) await this.#cancel(each)
    }
    if (this.#demand() <= 0) await this.#putBack(before)
  }

  /**
   * RabbitMQ takes back what is under way to a consumer that ends, and counts it as delivered. Nothing is under way to a consumer that has
   * all that it may have, nor from a line without jobs.
   * @returns whether it has ended
   */
  async #cancel(consumer: Consumer, mayCount = false): Promise<boolean> {
    const { line, tag } = consumer
    const { names, topology } = this.#traffic
    const isFilled = async () => !hasFree(consumer) || !(await topology.count(names.line(this.queue, line)))
    if (!mayCount && !(await isFilled())) return false
    if (!this.#consumers.delete(consumer)) return true
    await this.#channelOf(line === FOREIGN).run(async (channel) => {
      await channel.cancel(tag)
      // A classic queue may send until it answers the next call. amqplib ends the connection on a message without a consumer.
      const consumers: unknown = Reflect.get(channel, 'consumers')
      if (!(consumers instanceof Map)) return
      consumers.set(tag, (message: ConsumeMessage | null) => this.#arrived(consumer, message))
      await channel.prefetch(1)
      consumers.delete(tag)
    })
    return true
  }

  /** Those that cannot be moved now wait here for the next claim. @param before those that arrived by then */
  async #putBack(before: number): Promise<void> {
    const parked = [...this.#ready].filter(({ arrivedAt }) => arrivedAt <= before)
    if (parked.length === 0) return
    for (const each of parked) {
      this.#ready.delete(each)
      each.isEnding = true
    }
    try {
      const own = parked.filter(({ isForeign }) => !isForeign)
      const unclaimed = ({ job }: Delivery) => ({ [HEADER.attempt]: job.attempt - 1, [HEADER.fence]: job.fence - 1 })
      const copies = own.map((each) => copyOf(each, this.queue, unclaimed(each)))
      const answers = await sendBack(this.#traffic, copies)
      for (const each of parked) {
        const isCopied = answers[own.indexOf(each)] === 'stored'
        each.after = isCopied ? 'forget' : 'giveBack'
      }
      await this.#acknowledge(parked)
    } catch (error) {
      this.#closeIfInDoubt(error)
      for (const each of parked.filter((delivery) => this.#deliveries.has(delivery))) {
        this.#ready.add(each)
        each.isEnding = false
      }
    }
  }

  /** A copy of a job may have been stored. Only RabbitMQ knows, and it gives the original to somebody else. */
  #closeIfInDoubt(error: unknown): void {
    if (isMillpondError(error, 'StoreFull') || !isError(error)) return
    this.#traffic.links.in.drop(error)
  }

  #lost(why: Error | undefined, isForeign: boolean): void {
    const { lost, settings, bells } = this.#traffic
    const queue = this.queue
    const gone = [...this.#deliveries].filter((each) => each.isForeign === isForeign)
    for (const { job, leaseUntil } of gone) {
      if (leaseUntil === 0) continue
      this.totals.lost++
      lost.push({ id: job.id, queue, attempt: job.attempt, state: 'waiting' })
    }
    for (const each of gone) {
      this.#forget(each)
      this.#ready.delete(each)
    }
    for (const each of this.#consumers) if ((each.line === FOREIGN) === isForeign) this.#consumers.delete(each)
    if (why !== undefined) this.#trouble = toMillpondError(why, settings.where)
    // Workers ask for their claims at once, and stop what they run. Then they claim again.
    bells.ring('cancelled', queue)
    bells.ring('work', queue)
  }
}

const tagOf = ({ fields }: ConsumeMessage): number => fields.deliveryTag
const hasFree = ({ prefetch, unacked }: Consumer): boolean => prefetch > unacked
