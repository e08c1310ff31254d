/** RabbitMQ for a run alone, where it is installed. */
import { existsSync } from 'node:fs'
import { connect } from 'amqplib'
import { startRabbitmq } from '../../test/servers/rabbitmq.ts'
import type { Place } from '../places.ts'

/** Debian's, and Homebrew's. */
export const hasRabbitmq = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/sbin'].some((folder) =>
  existsSync(`${folder}/rabbitmq-server`),
)
export const hasMillpondOnRabbitmq = existsSync(new URL('../../src/stores/rabbitmq/index.ts', import.meta.url))

let prefixes = 0

/** The queue of those who use RabbitMQ by hand: a run has one of its own. */
export const queueIn = (url: string): string => `${new URL(url).searchParams.get('prefix') ?? 'lab'}-reports`

export async function rabbitmqPlace(): Promise<Place> {
  const server = await startRabbitmq()
  return {
    about: `RabbitMQ ${await version(server.url)}, durable queue, persistent messages`,
    /** What Millpond has in RabbitMQ begins with its prefix. */
    fresh: async () => `${server.url}?prefix=lab${++prefixes}`,
    stop: () => server.stop(),
  }
}

async function version(url: string): Promise<string> {
  const connection = await connect(url)
  const { version: found } = connection.connection.serverProperties
  await connection.close()
  return found
}
