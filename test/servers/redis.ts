import { untilCalm } from '../support/until.ts'
import { guard, type Running } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe, ServerProcess } from './process.ts'
import { type RedisPrograms, redisPrograms } from './programs.ts'
import { run } from './run.ts'

export interface RedisOptions {
  /** Whether what was written survives the process. Default true. */
  appendonly?: boolean
  /** Default `everysec`, as Redis itself; `always` for what must survive SIGKILL. */
  appendfsync?: 'always' | 'everysec' | 'no'
  /** Default `noeviction`. */
  maxmemoryPolicy?: string
  /** The server that it replicates; it answers when it has that one's data. Default none. */
  replicaOf?: ServerProcess
  /** Further arguments, such as `--maxmemory`, `100mb`. */
  args?: readonly string[]
}

export class RedisServer extends ServerProcess {
  readonly #cli: string

  constructor(recipe: Recipe, running: Running, cli: string) {
    super(recipe, running)
    this.#cli = cli
  }

  /** A command on a connection of its own, as `redis-cli` answers it. */
  command(...words: string[]): Promise<string> {
    return run(this.#cli, '-h', '127.0.0.1', '-p', `${this.port}`, ...words)
  }

  /** Waits until this replica has its master's data. */
  linked(): Promise<void> {
    return untilCalm(
      async () => (await this.command('info', 'replication')).includes('master_link_status:up'),
      `${this.name} has its master's data`,
    )
  }
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return startNode(await redisPrograms(), 'redis', await freePort(), options)
}

export async function startNode(
  { server, cli }: RedisPrograms,
  name: string,
  port: number,
  { appendonly = true, appendfsync = 'everysec', maxmemoryPolicy = 'noeviction', replicaOf, args = [] }: RedisOptions,
): Promise<RedisServer> {
  const folder = await guard().folder()
  const recipe: Recipe = {
    name,
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    command: server,
    args: [
      ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
      ...['--appendonly', appendonly ? 'yes' : 'no', '--appendfsync', appendfsync],
      ...['--maxmemory-policy', maxmemoryPolicy],
      // By default it waits 5 s for further replicas before it sends its data to one.
      ...['--repl-diskless-sync-delay', '0'],
      ...(replicaOf === undefined ? [] : ['--replicaof', '127.0.0.1', `${replicaOf.port}`]),
      ...args,
    ],
    ready: /Ready to accept connections/,
    quit: 'SIGTERM',
    drop: 'SIGKILL',
  }
  const redis = new RedisServer(recipe, await launch(recipe), cli)
  if (replicaOf !== undefined) await redis.linked()
  return redis
}
