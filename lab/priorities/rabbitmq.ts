/** RabbitMQ for a run alone, where it is installed. It brings Erlang's directory of nodes with it, which else would be left running. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'amqplib'
import { guard } from '../../test/servers/guard.ts'
import { freePort } from '../../test/servers/ports.ts'
import { launch, type Recipe, ServerProcess } from '../../test/servers/process.ts'
import type { Place } from '../places.ts'

/** Debian's, and Homebrew's; the one on Debian's PATH is a script that changes the account and runs this one. */
const PROGRAM = ['/usr/lib/rabbitmq/bin/rabbitmq-server', '/opt/homebrew/sbin/rabbitmq-server'].find(existsSync)
export const hasRabbitmq = PROGRAM !== undefined
export const hasMillpondOnRabbitmq = existsSync(new URL('../../src/stores/rabbitmq/index.ts', import.meta.url))

let prefixes = 0

/** The queue of those who use RabbitMQ by hand: a run has one of its own. */
export const queueIn = (url: string): string => `${new URL(url).searchParams.get('prefix') ?? 'lab'}-reports`

export async function rabbitmqPlace(): Promise<Place> {
  if (PROGRAM === undefined) throw new Error('RabbitMQ is not installed: apt-get install rabbitmq-server')
  const folder = await guard().folder()
  const [port, distribution, directory] = [await freePort(), await freePort(), await freePort()]
  const common = { folder, quit: 'SIGTERM', drop: 'SIGKILL' } as const
  const epmd: Recipe = {
    ...common,
    name: 'epmd',
    url: '',
    port: directory,
    command: 'epmd',
    args: ['-d', '-port', String(directory), '-address', '127.0.0.1'],
    ready: /epmd running/,
  }
  const settings = {
    HOME: folder,
    RABBITMQ_NODENAME: `lab${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: port,
    RABBITMQ_DIST_PORT: distribution,
    ERL_EPMD_PORT: directory,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: folder,
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_CONFIG_FILES: join(folder, 'none'),
    RABBITMQ_GENERATED_CONFIG_DIR: folder,
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    // With these two its script becomes the server, which so is ours to end.
    RABBITMQ_ALLOW_INPUT: 1,
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-noinput',
  }
  const rabbitmq: Recipe = {
    ...common,
    name: 'rabbitmq',
    url: `amqp://127.0.0.1:${port}`,
    port,
    command: 'env',
    args: [...Object.entries(settings).map(([name, value]) => `${name}=${value}`), PROGRAM],
    ready: /Server startup complete/,
  }
  const node = new ServerProcess(epmd, await launch(epmd))
  const server = new ServerProcess(rabbitmq, await launch(rabbitmq))
  return {
    about: `RabbitMQ ${await version(server.url)}, durable queue, persistent messages`,
    /** What Millpond has in RabbitMQ begins with its prefix. */
    fresh: async () => `${server.url}?prefix=lab${++prefixes}`,
    async stop() {
      await server.stop()
      await node.stop()
    },
  }
}

async function version(url: string): Promise<string> {
  const connection = await connect(url)
  const { version: found } = connection.connection.serverProperties
  await connection.close()
  return found
}
