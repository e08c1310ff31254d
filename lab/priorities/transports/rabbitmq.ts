/** RabbitMQ with prefetch 1: acknowledged when the handler is over, and before it begins. */
import { type Channel, type ChannelModel, type ConsumeMessage, connect } from 'amqplib'
import type { Message } from '../messages.ts'
import { queueIn } from '../rabbitmq.ts'
import type { Handler, Transport } from '../transport.ts'

const HIGHEST = 9

async function open<Some extends Channel>(url: string, channelOf: (connection: ChannelModel) => Promise<Some>) {
  const connection = await connect(url)
  const channel = await channelOf(connection)
  await channel.assertQueue(queueIn(url), { durable: true, maxPriority: HIGHEST })
  return { connection, channel }
}

function transport(acknowledge: 'after' | 'before'): Transport {
  return {
    async produce(url) {
      const { connection, channel } = await open(url, (made) => made.createConfirmChannel())
      return {
        async push(message, priority) {
          channel.sendToQueue(queueIn(url), Buffer.from(JSON.stringify(message)), { persistent: true, priority })
          await channel.waitForConfirms()
        },
        close: () => connection.close(),
      }
    },
    async consume(url, slots, handler) {
      for (let slot = 0; slot < slots; slot++) await consumer(url, handler, acknowledge)
    },
  }
}

/** One slot: it works on one message after the other. */
async function consumer(url: string, handler: Handler, acknowledge: 'after' | 'before'): Promise<void> {
  const { channel } = await open(url, (connection) => connection.createChannel())
  const handle = async (delivery: ConsumeMessage): Promise<void> => {
    if (acknowledge === 'before') channel.ack(delivery)
    await handler(JSON.parse(delivery.content.toString()) as Message)
    if (acknowledge === 'after') channel.ack(delivery)
  }
  let last = Promise.resolve()
  await channel.prefetch(1)
  await channel.consume(queueIn(url), (delivery) => {
    if (delivery !== null) last = last.then(() => handle(delivery))
  })
}

export const after = transport('after')
export const before = transport('before')
