/** RabbitMQ for tests: stores under a prefix of their own, and what they leave behind. */
import { connect } from 'amqplib'
import type { Store, StoreOptions } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { Names } from '../../src/stores/rabbitmq/names.ts'
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
  const spied = around(store, (_, input, next) => {
    for (const [name] of JSON.stringify(input).matchAll(/(?<="queue":")[^"]+/g)) queues.add(name)
    return next(input)
  })
  return {
    store: spied,
    async dispose() {
      await store.close()
      await clear(url, prefix, [...queues])
    },
  }
}

/** Removes all that stores of the prefix made. */
export async function clear(url: string, prefix: string, queues = ['q']): Promise<void> {
  const names = new Names(prefix)
  const lines = Array.from({ length: 10 }, (_, priority) => [`${priority}`, `${priority}.again`]).flat()
  const ofQueues = queues.flatMap((queue) => [names.dead(queue), ...lines.map((line) => names.line(queue, line))])
  const waits: string[] = []
  for (let wait = LONGEST_WAIT; wait >= SHORTEST_WAIT; wait /= 2) waits.push(names.wait(wait))
  const connection = await connect(url)
  const channel = await connection.createChannel()
  for (const name of [...ofQueues, ...waits, names.unrouted]) await channel.deleteQueue(name)
  for (const name of [...waits, names.due, names.unrouted, names.lines]) await channel.deleteExchange(name)
  await connection.close()
}
