/**
 * What servers cost while producers and workers are connected and nobody has anything to do: CPU of the server with all its
 * processes; with one queue, with thousands that were all used, and with schedules that each worker declares. Beside it, how long a push
 * takes there. Linux only.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startRedis } from '../../test/servers/redis.ts'
import { atMost } from '../bars.ts'
import { Child } from '../child.ts'
import { familyCpu } from '../cpu.ts'
import type { Experiment, Row } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'
import { quantile } from '../statistics.ts'

/** Most that PostgreSQL may use with one queue, and either server with many, in per cent of one core. */
const MAX_CPU_OF_ONE_QUEUE = 2
const MAX_CPU_OF_MANY_QUEUES = 5
/** Most that schedules may add, in per cent of one core, and how long they are looked at: workers declare them twice in that time. */
const MAX_CPU_OF_SCHEDULES = 0.5
const SECONDS_OF_SCHEDULES = 60
/** From the last job until the measurement begins: connecting, migrating and compiling are over then, in milliseconds. */
const SETTLE = 5000
const TIMED_PUSHES = 2000

const flags = {
  seconds: whole('that are measured', '10', '2'),
  each: whole('producers, and as many workers', '8', '2'),
  queues: whole('where there are many', '5000', '100'),
  schedules: whole('that each worker declares', '1000', '100'),
}

export const idle: Experiment<typeof flags> = {
  id: 'idle',
  flags,
  about: ({ each, seconds }) => `${each} producers and ${each} workers with nothing to do, over ${seconds} s.`,
  async *measure({ seconds, each, queues: many, schedules }) {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
    try {
      const count = `${many.toLocaleString('en')} queues`
      const deaf = `${postgres.url}?listen=off`
      // One queue comes first: the others stay.
      const cases: [name: string, server: Server, url: string | undefined, queues: number, maxCpu?: number][] = [
        ['PostgreSQL, nobody connected', postgres, undefined, 0],
        ['PostgreSQL', postgres, postgres.url, 1, MAX_CPU_OF_ONE_QUEUE],
        ['PostgreSQL, without LISTEN (?listen=off)', postgres, deaf, 1],
        [`PostgreSQL, ${count}`, postgres, postgres.url, many, MAX_CPU_OF_MANY_QUEUES],
        [`PostgreSQL, without LISTEN, ${count}`, postgres, deaf, many],
        ['Redis, nobody connected', redis, undefined, 0],
        ['Redis', redis, redis.url, 1],
        [`Redis, ${count}`, redis, redis.url, many, MAX_CPU_OF_MANY_QUEUES],
      ]
      const rows: Row[] = []
      for (const [name, server, url, queues, maxCpu] of cases) {
        tell(name)
        const used = await measure({ server, url, queues, each, seconds })
        const push = Number.isNaN(used.push) ? '' : used.push.toFixed(2)
        const bars = maxCpu === undefined ? [] : [atMost(used.server, maxCpu, ' %')]
        rows.push({
          cells: [name, used.server.toFixed(2), used.each.toFixed(2), push],
          bars,
          figures: { name, ...used },
        })
        if (server === postgres && queues === 1 && url === postgres.url) {
          const scheduled = `PostgreSQL, ${schedules.toLocaleString('en')} schedules`
          tell(scheduled)
          const usage = { server, url, queues, each, seconds: Math.max(seconds, SECONDS_OF_SCHEDULES) }
          const more = await measure({ ...usage, schedules })
          rows.push({
            cells: [scheduled, more.server.toFixed(2), more.each.toFixed(2), more.push.toFixed(2)],
            bars: [atMost(Math.max(0, more.server - used.server), MAX_CPU_OF_SCHEDULES, ' % more')],
            figures: { name: scheduled, ...more },
          })
        }
      }
      yield { head: ['server', 'its CPU, % of a core', 'of each producer and worker', 'one push, ms'], rows }
    } finally {
      await Promise.all([postgres.stop(), redis.stop()])
    }
  },
}

interface Server {
  pid: number
  url: string
}

async function members(url: string, each: number, schedules: number): Promise<Child[]> {
  const script = new URL('member.ts', import.meta.url)
  const children: Child[] = []
  for (const role of ['worker', 'producer']) {
    for (let i = 0; i < each; i++) children.push(await Child.start(script, [url, role, `${schedules}`]))
  }
  return children
}

/** Each gets a job that stays. */
async function makeQueues(url: string, count: number): Promise<void> {
  const pond = await Millpond.open(url)
  for (let from = 1; from < count; from += 100) {
    const names = Array.from({ length: Math.min(100, count - from) }, (_, n) => `queue-${from + n}`)
    await Promise.all(names.map((name) => pond.queue(name).push(name)))
  }
  await pond.close()
}

/** Median ms of a push, one awaited after the other, to a queue that nobody works on. */
async function timePushes(url: string): Promise<number> {
  const pond = await Millpond.open(url)
  const queue = pond.queue('timed')
  const times: number[] = []
  for (let n = 0; n < TIMED_PUSHES; n++) {
    const began = performance.now()
    await queue.push(n)
    if (n >= TIMED_PUSHES / 4) times.push(performance.now() - began)
  }
  await pond.close()
  return quantile(times, 0.5)
}

interface Usage {
  /** Per cent of one core: the server's, and that of each producer and worker. */
  server: number
  each: number
  /** ms */
  push: number
}

interface Measured {
  server: Server
  url: string | undefined
  queues: number
  /** Producers, and as many workers. */
  each: number
  seconds: number
  /** That each worker declares. */
  schedules?: number
}

async function measure({ server, url, queues, each, seconds, schedules = 0 }: Measured): Promise<Usage> {
  if (url !== undefined) await makeQueues(url, queues)
  const children = url === undefined ? [] : await members(url, each, schedules)
  await sleep(SETTLE)
  const usage = () => ({
    at: performance.now(),
    server: familyCpu(server.pid),
    each: children.reduce((sum, { pid = 0 }) => sum + familyCpu(pid), 0),
  })
  const before = usage()
  await sleep(seconds * 1000)
  const after = usage()
  const percent = (used: number): number => (used / ((after.at - before.at) / 1000)) * 100
  const push = url === undefined ? Number.NaN : await timePushes(url)
  await Promise.all(children.map((child) => child.stop()))
  return {
    server: percent(after.server - before.server),
    each: children.length === 0 ? 0 : percent(after.each - before.each) / children.length,
    push,
  }
}
