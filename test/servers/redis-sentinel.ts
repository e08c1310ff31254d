/** Redis with Sentinel: a master, its replicas, and three sentinels that promote one of them when it fails. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { untilCalm } from '../support/until.ts'
import { guard } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe } from './process.ts'
import { redisPrograms } from './programs.ts'
import { RedisServer, startNode } from './redis.ts'

const SENTINELS = 3
/** What the sentinels do by the clock, in milliseconds. As they come, they would look for new replicas every ten seconds. */
const PERIODS = { 'info-period': 500, 'ask-period': 200, 'publish-period': 200 }
export const MASTER_NAME = 'mymaster'

export interface RedisSentinelOptions {
  /** Default 2. */
  replicas?: number
  /** After how long without an answer a server counts as down, in milliseconds. Default 1000. */
  downAfter?: number
  /** What the servers want of clients, and the sentinels. Default none. */
  password?: string
  sentinelPassword?: string
}

export class RedisSentinel {
  readonly name = 'redis-sentinel'
  /** `redis+sentinel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/mymaster`, without passwords. */
  readonly url: string
  readonly nodes: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]
  readonly #credentials: readonly string[]
  readonly #sentinelCredentials: readonly string[]

  constructor(
    nodes: readonly RedisServer[],
    sentinels: readonly RedisServer[],
    { password, sentinelPassword }: RedisSentinelOptions,
  ) {
    this.nodes = nodes
    this.sentinels = sentinels
    this.#credentials = password === undefined ? [] : ['--no-auth-warning', '-a', password]
    this.#sentinelCredentials = sentinelPassword === undefined ? [] : ['--no-auth-warning', '-a', sentinelPassword]
    this.url = `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`
  }

  command(node: RedisServer, ...words: string[]): Promise<string> {
    return node.command(...this.#credentials, ...words)
  }

  /** As the sentinels see it; undefined: they do not agree. */
  async master(): Promise<RedisServer | undefined> {
    const ports = await Promise.all(
      this.sentinels.map(async (sentinel) => {
        const words = ['sentinel', 'get-master-addr-by-name', MASTER_NAME]
        return Number((await sentinel.command(...this.#sentinelCredentials, ...words)).split('\n')[1])
      }),
    )
    return this.nodes.find(({ port }) => ports.every((seen) => seen === port))
  }

  /** Waits until another server is the master, and all sentinels know it. */
  async promoted(before: RedisServer): Promise<RedisServer> {
    let now: RedisServer | undefined
    await untilCalm(async () => {
      now = await this.master()
      return now !== undefined && now !== before && (await this.command(now, 'role')).startsWith('master')
    }, 'a replica is promoted')
    return now ?? before
  }

  /** Waits until the sentinels know of each other, and of all replicas that have their master's data. */
  async whole(): Promise<void> {
    await untilCalm(async () => {
      const infos = await Promise.all(
        this.sentinels.map((sentinel) => sentinel.command(...this.#sentinelCredentials, 'info', 'sentinel')),
      )
      const wanted = `status=ok,address=.*slaves=${this.nodes.length - 1},sentinels=${SENTINELS}`
      const master = await this.master()
      if (master === undefined || !infos.every((info) => new RegExp(wanted).test(info))) return false
      const online = (await this.command(master, 'info', 'replication')).match(/state=online/g) ?? []
      return online.length === this.nodes.length - 1
    }, 'the sentinels see all')
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.nodes].map((server) => server.stop()))
  }
}

export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  const { replicas = 2, downAfter = 1000, password, sentinelPassword } = options
  const programs = await redisPrograms()
  const args = password === undefined ? [] : ['--requirepass', password, '--masterauth', password]
  const master = await startNode(programs, 'redis master', await freePort(), { args })
  const others = await Promise.all(
    Array.from({ length: replicas }, async (_, i) => {
      const replicaArgs = [...args, '--replicaof', '127.0.0.1', `${master.port}`]
      return startNode(programs, `redis replica ${i + 1}`, await freePort(), { args: replicaArgs })
    }),
  )
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, async (_, i) => {
      const port = await freePort()
      const folder = await guard().folder()
      const file = join(folder, 'sentinel.conf')
      const lines = [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${folder}`,
        `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} 2`,
        `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfter}`,
        `sentinel failover-timeout ${MASTER_NAME} 2000`,
        ...(password === undefined ? [] : [`sentinel auth-pass ${MASTER_NAME} ${password}`]),
        ...(sentinelPassword === undefined
          ? []
          : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      const recipe: Recipe = {
        name: `redis sentinel ${i + 1}`,
        url: `redis://127.0.0.1:${port}`,
        port,
        folder,
        command: programs.server,
        args: [file, '--sentinel'],
        ready: /Sentinel ID is/,
        quit: 'SIGTERM',
        drop: 'SIGKILL',
      }
      const sentinel = new RedisServer(recipe, await launch(recipe), programs.cli)
      const words = sentinelPassword === undefined ? [] : ['--no-auth-warning', '-a', sentinelPassword]
      for (const [name, ms] of Object.entries(PERIODS)) {
        await sentinel.command(...words, 'sentinel', 'debug', name, `${ms}`)
      }
      return sentinel
    }),
  )
  const redis = new RedisSentinel([master, ...others], sentinels, options)
  await redis.whole()
  return redis
}
