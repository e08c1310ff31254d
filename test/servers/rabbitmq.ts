/** RabbitMQ, alone on its machine. It brings Erlang's directory of nodes (epmd) with it, which else would be left running. */

import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { guard, type Running } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe, ServerProcess } from './process.ts'
import { rabbitmqFolder } from './programs.ts'
import { run } from './run.ts'

export interface RabbitmqOptions {
  /** Lines of rabbitmq.conf. */
  conf?: readonly string[]
  /** Erlang's terms of advanced.config for the application `rabbit`, such as `{channel_tick_interval, 500}`. */
  advanced?: readonly string[]
}

export class RabbitmqServer extends ServerProcess {
  readonly #directory: ServerProcess
  readonly #node: string
  readonly #environment: readonly string[]

  constructor(
    recipe: Recipe,
    running: Running,
    directory: ServerProcess,
    node: string,
    environment: readonly string[],
  ) {
    super(recipe, running)
    this.#directory = directory
    this.#node = node
    this.#environment = environment
  }

  /** Calls a function of Erlang on this node, such as `rabbit:version()`. rabbitmqctl would do, but takes seconds to start. */
  async call(module: string, name: string, ...args: string[]): Promise<string> {
    const call = `rpc:call('${this.#node}', ${module}, ${name}, [${args.join(', ')}])`
    const flags = ['-noinput', '-hidden', '-sname', `caller${randomInt(1e9)}@localhost`, '-eval']
    return run('env', ...this.#environment, 'erl', ...flags, `io:format("~p", [${call}]), halt().`)
  }

  override async stop(): Promise<void> {
    await super.stop()
    await this.#directory.stop()
  }
}

export async function startRabbitmq({ conf = [], advanced = [] }: RabbitmqOptions = {}): Promise<RabbitmqServer> {
  const programs = await rabbitmqFolder()
  const folder = await guard().folder()
  const [port, distribution, directoryPort] = [await freePort(), await freePort(), await freePort()]
  const common = { quit: 'SIGTERM', drop: 'SIGKILL' } as const
  const epmd: Recipe = {
    ...common,
    name: 'epmd',
    url: '',
    port: directoryPort,
    folder: await guard().folder(),
    command: 'epmd',
    args: ['-d', '-port', `${directoryPort}`, '-address', '127.0.0.1'],
    ready: /epmd running/,
  }
  const files = { 'rabbitmq.conf': conf.join('\n'), 'advanced.config': `[{rabbit, [${advanced.join(', ')}]}].` }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  const settings = {
    HOME: folder,
    RABBITMQ_NODENAME: `test${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: port,
    RABBITMQ_DIST_PORT: distribution,
    ERL_EPMD_PORT: directoryPort,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: folder,
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
    RABBITMQ_GENERATED_CONFIG_DIR: folder,
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    // With these two its script becomes the server, which so is ours to end.
    RABBITMQ_ALLOW_INPUT: 1,
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-noinput',
  }
  const environment = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const recipe: Recipe = {
    ...common,
    name: 'rabbitmq',
    url: `amqp://127.0.0.1:${port}`,
    port,
    folder,
    command: 'env',
    args: [...environment, join(programs, 'rabbitmq-server')],
    ready: /Server startup complete/,
  }
  const directory = new ServerProcess(epmd, await launch(epmd))
  const running = await launch(recipe)
  return new RabbitmqServer(recipe, running, directory, settings.RABBITMQ_NODENAME, environment)
}
