/**
 * How long scripts keep Redis from all others, as its SLOWLOG tells, in a pond with very many groups, schedules and blocked jobs; and how much
 * the end of one of many parents writes to the append-only file.
 */
import { spawnSync } from 'node:child_process'
import { openStore } from '../../src/stores/open.ts'
import { type RedisServer, startRedis } from '../../test/servers/redis.ts'
import { bytesOfEnds } from '../../test/stores/redis-aof.ts'
import { fanOf, Scene, type Step } from '../../test/stores/redis-scene.ts'
import { newJobs } from '../../test/support/jobs.ts'
import { atMost } from '../bars.ts'
import type { Experiment, Row } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'

/** Most ms of one script. */
const MAX_SCRIPT = 10
const MAX_WHOLE_PUSH = 100
/** Most bytes that a link adds to the end of a job. */
const MAX_LINK_BYTES = 300

const flags = {
  groups: whole('groups of a limited queue', '100k', '2000'),
  schedules: whole('schedules', '100k', '1000'),
  blocked: whole('blocked jobs', '1M', '20k'),
  whole: whole('jobs of a whole push, and parents of one child', '10k', '1000'),
  rounds: whole('of each operation; the least of their longest scripts counts', '3', '2'),
}

export const slowlog: Experiment<typeof flags> = {
  id: 'slowlog',
  flags,
  about: ({ groups, schedules, blocked, rounds }) =>
    `${shown(groups)} groups, ${shown(schedules)} schedules and ${shown(blocked)} blocked jobs in one pond. The longest script of each ` +
    `operation, by SLOWLOG: the least and the most of ${rounds} rounds; and the least CPU of a call in the mean, which a busy machine does not raise.`,
  async *measure({ groups, schedules, blocked, whole, rounds }) {
    const args = [
      '--slowlog-log-slower-than',
      '200',
      '--slowlog-max-len',
      '100000',
      '--auto-aof-rewrite-percentage',
      '0',
    ]
    const server = await startRedis({ appendfsync: 'no', args })
    // On a busy machine a script would be as long as others keep the server from its core. Needs root; without it, that is so.
    spawnSync('chrt', ['--fifo', '--pid', '1', `${server.pid}`])
    try {
      const clock = { now: Date.now() }
      const store = await openStore(server.url, { clock: () => clock.now, timeout: 60_000 })
      const scene = new Scene(store, clock, { groups, schedules, blocked, whole, list: 500, page: 1000 })
      await server.command('slowlog', 'reset')
      await scene.fill(tell)
      const rows = [await filled(server)]
      for (const step of [...scene.steps(), ...scene.lastSteps()]) {
        tell(step.name)
        rows.push(await measured(server, step, rounds))
      }
      await store.close()
      yield { title: 'Scripts', head: ['', 'longest script, ms', 'of the slowest round', 'CPU of a call, ms'], rows }

      tell('fan-in')
      const perEnd = async (jobs: ReturnType<typeof fanOf>) => {
        await server.command('flushall')
        return bytesOfEnds(server, jobs, whole - 1)
      }
      const [linked, plain] = [await perEnd(fanOf(whole)), await perEnd(newJobs(whole, { queue: 'fan' }))]
      const row = (what: string, bytes: number, bars: Row['bars'] = []): Row => ({
        cells: [what, bytes.toFixed(0)],
        bars,
        figures: { what, bytes },
      })
      const link = linked - plain
      yield {
        title: `${shown(whole)} parents of one child end one by one`,
        head: ['', 'bytes of the append-only file for each'],
        rows: [
          row('claim and end of a job without children', plain),
          row('claim and end of a parent', linked),
          row('the link', link, [atMost(link, MAX_LINK_BYTES, ' bytes')]),
        ],
      }
    } finally {
      await server.stop()
    }
  },
}

const shown = (count: number): string => count.toLocaleString('en')

interface Used {
  /** Of the thread that runs scripts, in ms. */
  cpu: number
  calls: number
}

/** What the server has used so far, and how many scripts were called. */
async function used(server: RedisServer): Promise<Used> {
  const info = `${await server.command('info', 'cpu')}${await server.command('info', 'commandstats')}`
  const sum = (pattern: RegExp) => [...info.matchAll(pattern)].reduce((all, [, figure]) => all + Number(figure), 0)
  return {
    cpu: 1000 * sum(/used_cpu_(?:user|sys)_main_thread:([\d.]+)/g),
    calls: sum(/cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/g),
  }
}

/** Milliseconds of the longest script since the last reset. */
async function longest(server: RedisServer): Promise<number> {
  const script = `local most = 0
    for _, entry in ipairs(redis.call('SLOWLOG', 'GET', 100000)) do most = math.max(most, entry[3]) end
    return most`
  const most = Number(await server.command('eval', script, '0'))
  await server.command('slowlog', 'reset')
  return most / 1000
}

async function filled(server: RedisServer): Promise<Row> {
  const most = await longest(server)
  const what = 'while all was stored'
  return { cells: [what, '', most.toFixed(1), ''], bars: [], figures: { what, most } }
}

async function measured(
  server: RedisServer,
  { name, isWhole, isMany, isOnce, prepare, run }: Step,
  rounds: number,
): Promise<Row> {
  const times: number[] = []
  const cpus: number[] = []
  for (let round = 0; round < (isOnce === true || isMany === true ? 1 : rounds); round++) {
    await prepare?.()
    await longest(server)
    const before = await used(server)
    await run()
    const after = await used(server)
    cpus.push((after.cpu - before.cpu) / Math.max(1, after.calls - before.calls))
    times.push(await longest(server))
  }
  const least = Math.min(...times)
  return {
    cells: [name, least.toFixed(1), Math.max(...times).toFixed(1), Math.min(...cpus).toFixed(1)],
    bars: [atMost(least, isWhole === true ? MAX_WHOLE_PUSH : MAX_SCRIPT, ' ms')],
    figures: { name, times, cpus },
  }
}
