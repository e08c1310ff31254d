/** RabbitMQ for tests: stores under a prefix of their own, and what they leave behind. */
import { connect } from 'amqplib'
import type { Store, StoreOptions } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { DEAD, Names } from '../../src/stores/rabbitmq/names.ts'
import { LONGEST_WAIT, SHORTEST_WAIT } from '../../src/stores/rabbitmq/waits.ts'

let opened = 0
export const freshPrefix = (): string => `t${process.pid}-${Date.now().toString(36)}-${opened++}`

/** A fresh store. Disposing of it removes all that it made in RabbitMQ. */
export async function openRabbitmq(
  url: string,
  options: StoreOptions = {},
): Promise<{ store: Store; dispose(): Promise<void> }> {
  const prefix = freshPrefix()
  const store = await open(url, { prefix, ...options })
  // RabbitMQ lists no queues.
  const queues = new Set<string>()
  let hasDelays = false
  const spied = around(store, (_, input, next) => {
    const text = JSON.stringify(input)
    for (const [name] of text.matchAll(/(?<="queue":")[^"]+/g)) queues.add(name)
    hasDelays ||= /"(?:delay|runAt)":(?!0|null)|"scheduled"/.test(text)
    return next(input)
  })
  return {
    store: spied,
    async dispose() {
      await store.close()
      if (queues.size > 0) await clear(url, prefix, [...queues], hasDelays)
    },
  }
}

/** Removes all that stores of the prefix made. */
export async function clear(url: string, prefix: string, queues = ['q'], hasDelays = true): Promise<void> {
  const names = new Names(prefix)
  const lines = Array.from({ length: 10 }, (_, priority) => [`${priority}`, `${priority}.again`]).flat()
  const ofQueues = queues.flatMap((queue) => [names.line(queue, DEAD), ...lines.map((line) => names.line(queue, line))])
  const waits: string[] = []
  for (let wait = LONGEST_WAIT; hasDelays && wait >= SHORTEST_WAIT; wait /= 2) waits.push(names.wait(wait))
  const connection = await connect(url)
  // A channel does one thing after the other.
  const channels = await Promise.all(Array.from({ length: 4 }, () => connection.createChannel()))
  const all = [...ofQueues, ...waits, names.unrouted].map((name, at) => channels[at % 4]?.deleteQueue(name))
  const exchanges = [...waits, names.due, names.unrouted, names.lines]
  await Promise.all([...all, ...exchanges.map((name, at) => channels[at % 4]?.deleteExchange(name))])
  await connection.close()
}
