/** RabbitMQ for a run alone, where it is installed. */
import { existsSync } from 'node:fs'
import { connect } from 'amqplib'
import { startRabbitmq } from '../../test/servers/rabbitmq.ts'
import type { Place } from '../places.ts'

/** Debian's, and Homebrew's. */
export const hasRabbitmq = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/sbin'].some((folder) =>
  existsSync(`${folder}/rabbitmq-server`),
)
export const QUEUE = 'reports'

export async function rabbitmqPlace(): Promise<Place> {
  const server = await startRabbitmq()
  return {
    about: `RabbitMQ ${await version(server.url)}, durable queue, persistent messages`,
    async fresh() {
      const connection = await connect(server.url)
      const channel = await connection.createChannel()
      await channel.deleteQueue(QUEUE)
      await connection.close()
      return server.url
    },
    stop: () => server.stop(),
  }
}

async function version(url: string): Promise<string> {
  const connection = await connect(url)
  const { version: found } = connection.connection.serverProperties
  await connection.close()
  return found
}
