/**
 * Queues of one pond on 1, 2 and 4 masters of a Redis Cluster, in one run. Few cores do not show more masters as more jobs/s. What they show
 * is the CPU time of the busiest master for a job: one core of its own does 1 s ÷ that time.
 */
import { Millpond } from '../../src/index.ts'
import { shardOf } from '../../src/stores/shards/route.ts'
import { BUS, freePort } from '../../test/servers/ports.ts'
import { redisPrograms } from '../../test/servers/programs.ts'
import { type RedisServer, startNode } from '../../test/servers/redis.ts'
import { run } from '../../test/servers/run.ts'
import type { Experiment } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'

const MASTERS = 4
const COUNTS = [1, 2, 4]
/** Divided by each of the counts. */
const QUEUES = 8
const BATCH = 500

const flags = { jobs: whole('of a run', '80k', '4k') }

export const shards: Experiment<typeof flags> = {
  id: 'shards',
  flags,
  about: ({ jobs }) =>
    `${jobs.toLocaleString('en')} jobs in ${QUEUES} queues of one pond, on 1, 2 and 4 masters of a Redis Cluster of ${MASTERS}, pushed in bulk, then worked off by one process.`,
  async *measure({ jobs }) {
    const nodes = await startMasters()
    try {
      const rows = []
      for (const count of COUNTS) {
        tell(`${count} of ${MASTERS} masters`)
        const { seconds, cpu } = await measured(nodes, count, jobs)
        const busiest = Math.max(...cpu)
        const perJob = (busiest / jobs) * 1e6
        const rates = [jobs / seconds.push, jobs / seconds.drain].map((rate) => Math.round(rate).toLocaleString('en'))
        const bound = Math.round(1e6 / perJob).toLocaleString('en')
        rows.push({
          cells: [`${count}`, ...rates, perJob.toFixed(1), bound],
          bars: [],
          figures: { count, jobs, seconds, cpu, perJob },
        })
      }
      yield {
        head: ['masters', 'push/s', 'drain/s', 'µs of CPU a job, busiest master', 'jobs/s that one core each would do'],
        rows,
        notes: [
          'Pushes and work together make the CPU time of a job. Fewer µs on the busiest master are more jobs/s of the pond.',
        ],
      }
    } finally {
      await Promise.all(nodes.map((node) => node.stop()))
    }
  },
}

async function startMasters(): Promise<RedisServer[]> {
  const programs = await redisPrograms()
  const nodes = await Promise.all(
    Array.from({ length: MASTERS }, async () => {
      const port = await freePort(BUS)
      return startNode(programs, `redis-cluster node ${port}`, port, { args: ['--cluster-enabled', 'yes'] })
    }),
  )
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`)
  await run(programs.cli, '--cluster', 'create', ...addresses, '--cluster-yes')
  while (!(await states(nodes)).every((state) => state.includes('cluster_state:ok')));
  return nodes
}

const states = (nodes: readonly RedisServer[]) => Promise.all(nodes.map((node) => node.command('cluster', 'info')))

/** A prefix whose shards are in slots of as many masters. */
async function prefixFor(node: RedisServer, count: number): Promise<string> {
  for (let n = 0; ; n++) {
    const slots = await Promise.all(
      Array.from({ length: count }, (_, shard) => node.command('cluster', 'keyslot', `{lab-${count}-${n}.${shard}}`)),
    )
    const masters = new Set(slots.map((slot) => Math.floor((Number(slot) / 16_384) * MASTERS)))
    if (masters.size === count) return `lab-${count}-${n}`
  }
}

/** As many queues in each shard. */
function queuesIn(count: number): string[] {
  const names: string[] = []
  for (let n = 0; names.length < QUEUES; n++) {
    const shard = shardOf(`queue${n}`, count)
    if (names.filter((name) => shardOf(name, count) === shard).length < QUEUES / count) names.push(`queue${n}`)
  }
  return names
}

/** Seconds that the server has computed. */
async function cpuOf(node: RedisServer): Promise<number> {
  const info = await node.command('info', 'cpu')
  return [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].reduce((sum, [, seconds]) => sum + Number(seconds), 0)
}

async function measured(nodes: readonly RedisServer[], count: number, jobs: number) {
  const [first] = nodes
  if (first === undefined) throw new Error('there are no masters')
  const prefix = await prefixFor(first, count)
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const pond = await Millpond.open(`redis://${hosts}?prefix=${prefix}&shards=${count}`)
  const queues = queuesIn(count).map((name) => pond.queue<number>(name, { capacity: null, keep: { done: 0 } }))
  const before = await Promise.all(nodes.map(cpuOf))
  const began = performance.now()
  await Promise.all(
    queues.map(async (queue) => {
      for (let left = jobs / QUEUES; left > 0; left -= BATCH) {
        await queue.pushMany(Array.from({ length: Math.min(left, BATCH) }, (_, n) => n))
      }
    }),
  )
  const pushed = performance.now()
  let ran = 0
  await new Promise<void>((resolve) => {
    for (const queue of queues) {
      queue.work(
        async () => {
          if (++ran === jobs) resolve()
        },
        { concurrency: 100 },
      )
    }
  })
  const ended = performance.now()
  await pond.close()
  const cpu = (await Promise.all(nodes.map(cpuOf))).map((seconds, at) => seconds - (before[at] ?? 0))
  return { seconds: { push: (pushed - began) / 1000, drain: (ended - pushed) / 1000 }, cpu }
}
