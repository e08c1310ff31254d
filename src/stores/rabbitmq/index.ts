/**
 * The RabbitMQ store: for teams that have RabbitMQ, 3.10 or later. AMQP finds no message by its id, and shows none without delivering it,
 * so the store lacks what needs that: see CAPABILITIES and docs/rabbitmq.md. contract/rabbitmq/README.md says what is in RabbitMQ.
 * The options of its URL: settings.ts.
 *
 * The path of a job: operations/push.ts → traffic.ts → connection/publisher.ts → RabbitMQ → source.ts → operations/end.ts.
 */
import '../../values/runtime/runtime.ts'
import type { Capabilities, OpenStore, Store } from '../../store.ts'
import { around } from '../around.ts'
import { Bells } from '../bells.ts'
import { loadAmqplib } from '../driver.ts'
import { refusing } from '../lacking.ts'
import { Link } from './connection/link.ts'
import { Publisher } from './connection/publisher.ts'
import type { StoreContext } from './context.ts'
import { closed } from './errors.ts'
import { Names } from './names.ts'
import { operationsOf } from './operations/index.ts'
import { Queues } from './queues.ts'
import { settingsOf } from './settings.ts'
import { Topology } from './topology.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: true, shared: true, pipelined: true, delays: true, priorities: true, restore: true },
  ...{ transactions: false, replicas: false, spill: false, settings: false, keys: false, once: false, graphs: false },
  ...{
    results: false,
    logs: false,
    steps: false,
    limits: false,
    rates: false,
    groups: false,
    counts: false,
    histograms: false,
  },
  ...{ find: false, lists: false, text: false, cancel: false, update: false, requeue: false, remove: false },
  ...{ workers: false, schedules: false, bounded: false },
}

/** @throws InvalidOption, DriverMissing, StoreUnavailable */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  const amqplib = await loadAmqplib()
  const names = new Names(settings.prefix)
  const link = (use: string): Link => new Link(amqplib, settings, `millpond ${use} (process ${process.pid})`)
  const links = { out: link('pushes'), in: link('claims') }
  const publisher = new Publisher(links.out)
  const topology = new Topology(links.in, names)
  const context: StoreContext = {
    ...{ settings, names, links, publisher, sources: new Map(), bells: new Bells(), lost: [] },
    limitedPush: Promise.resolve(),
    now: options.clock ?? Date.now,
    topology,
    queues: new Queues(links.in, names, topology, publisher, (queue) => changed(context, queue)),
  }
  try {
    await links.in.model()
  } catch (error) {
    await close(context)
    throw error
  }
  return storeOf(context)
}

function changed({ sources, bells }: StoreContext, queue: string): void {
  sources.get(queue)?.changed()
  bells.ring('work', queue)
  bells.ring('room', queue)
}

function storeOf(context: StoreContext): Store {
  let closing: Promise<void> | undefined
  const store = refusing({
    name: 'rabbitmq',
    capabilities: CAPABILITIES,
    operations: operationsOf(context),
    listen(listener) {
      if (context.links.out.isClosed) throw closed()
      return context.bells.listen(listener)
    },
    close() {
      closing ??= close(context)
      return closing
    },
  })
  return around(store, (_, input, next) => (context.links.out.isClosed ? Promise.reject(closed()) : next(input)))
}

async function close({ links, publisher, sources, bells }: StoreContext): Promise<void> {
  await Promise.allSettled([...sources.values()].map((source) => source.close()))
  await publisher.idle
  bells.silence()
  await Promise.all([links.out.close(), links.in.close()])
}
