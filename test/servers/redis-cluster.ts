/** Redis Cluster: three masters with a replica each. */

import { untilCalm } from '../support/until.ts'
import { BUS, freePort } from './ports.ts'
import { redisPrograms } from './programs.ts'
import { type RedisOptions, type RedisServer, startNode } from './redis.ts'
import { run } from './run.ts'

const MASTERS = 3

export interface RedisClusterOptions extends Omit<RedisOptions, 'replicaOf'> {
  /** `cluster-node-timeout`: after how long without an answer a node counts as failed, in milliseconds. Default 2000. */
  nodeTimeout?: number
}

export class RedisCluster {
  readonly name = 'redis-cluster'
  /** Names the nodes that are masters at first: `redis://127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003`. */
  readonly url: string
  readonly nodes: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
    this.url = `redis://${addresses(nodes.slice(0, MASTERS)).join(',')}`
  }

  /** The nodes that run and are masters, as they see it themselves. */
  async masters(): Promise<RedisServer[]> {
    const running = this.nodes.filter(({ alive }) => alive)
    const roles = await Promise.all(running.map((node) => node.command('role')))
    return running.filter((_, i) => roles[i]?.startsWith('master'))
  }

  /** The master that has a pond's keys. */
  async masterOf(prefix = 'millpond'): Promise<RedisServer> {
    const masters = await this.masters()
    const answers = await Promise.all(
      masters.map((node) => node.command('exists', `{${prefix}}:jobs`).catch((error: Error) => error.message)),
    )
    const master = masters.find((_, at) => !answers[at]?.includes('MOVED'))
    if (master === undefined) throw new Error(`no master has the slot of {${prefix}}`)
    return master
  }

  /** Waits until all slots have a master again and all nodes that run know it: after one was killed, a replica takes its place. */
  async ok(): Promise<void> {
    await untilCalm(async () => {
      const running = this.nodes.filter(({ alive }) => alive)
      const infos = await Promise.all(running.map((node) => node.command('cluster', 'info')))
      const ok = infos.every((info) => info.includes('cluster_state:ok') && info.includes('cluster_slots_ok:16384'))
      return ok && (await this.masters()).length === MASTERS
    }, 'the cluster is ok')
  }

  /** Waits until each master has a replica with its data, too: all nodes have to run. */
  async whole(): Promise<void> {
    await this.ok()
    await untilCalm(async () => {
      const masters = await this.masters()
      await Promise.all(this.nodes.filter((node) => !masters.includes(node)).map((node) => node.linked()))
      const infos = await Promise.all(masters.map((node) => node.command('info', 'replication')))
      return infos.length === MASTERS && infos.every((info) => /connected_slaves:[1-9]/.test(info))
    }, 'every master has its replica')
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }
}

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const programs = await redisPrograms()
  const { nodeTimeout = 2000, args = [], ...rest } = options
  const all = { ...rest, args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', `${nodeTimeout}`, ...args] }
  const nodes = await Promise.all(
    Array.from({ length: 2 * MASTERS }, async () => {
      const port = await freePort(BUS)
      return startNode(programs, `redis-cluster node ${port}`, port, all)
    }),
  )
  await run(programs.cli, '--cluster', 'create', ...addresses(nodes), '--cluster-replicas', '1', '--cluster-yes')
  const cluster = new RedisCluster(nodes)
  await cluster.whole()
  return cluster
}

const addresses = (nodes: readonly RedisServer[]): string[] => nodes.map(({ port }) => `127.0.0.1:${port}`)
