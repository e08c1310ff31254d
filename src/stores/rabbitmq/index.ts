/**
 * The RabbitMQ store: for teams that have RabbitMQ, 3.10 or later. AMQP finds no message by its id, and shows none without delivering it,
 * so the store lacks what needs that: see CAPABILITIES and docs/rabbitmq.md. contract/rabbitmq/README.md says what is in RabbitMQ.
 *
 * URL: `amqp://user:password@host:5672/vhost`, `amqps://…` with TLS, `amqp://a,b,c/vhost` for the nodes of a cluster. Options, in the URL's
 * query or as the second argument:
 * - `prefix` (`millpond`): what the names of exchanges and queues begin with.
 * - `foreign` (0): 1 to consume also the queue of RabbitMQ that has the queue's own name, whoever publishes to it.
 * - `timeout` (5000): ms until a call without an answer is rejected with `StoreUnavailable`.
 * - `heartbeat` (15): seconds between signs of life of a connection.
 *
 * The path of a job: operations/push.ts → context.ts, send → connection/publisher.ts → RabbitMQ → source.ts → operations/end.ts.
 */
import '../../values/runtime.ts'
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
  ...{
    durable: true,
    shared: true,
    pipelined: true,
    transactions: false,
    replicas: false,
    spill: false,
    settings: false,
  },
  ...{
    delays: true,
    priorities: true,
    keys: false,
    once: false,
    graphs: false,
    results: false,
    logs: false,
    limits: false,
    rates: false,
    groups: false,
  },
  ...{ find: false, lists: false, text: false, cancel: false, update: false, requeue: false, remove: false },
  ...{ restore: true, counts: false, histograms: false, workers: false, schedules: false },
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
  await publisher.idle()
  bells.silence()
  await Promise.all([links.out.close(), links.in.close()])
}
