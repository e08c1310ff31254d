/**
 * What servers cost while eight producers and eight workers are connected and nobody has anything to do: CPU of the server with
 * all its processes, in per cent of one core. Linux only.
 *
 *   node lab/idle/main.ts [--seconds 10] [--each 8]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startRedis } from '../../test/servers/redis.ts'
import { familyCpu } from './cpu.ts'

/** Most that PostgreSQL may use, in per cent of one core. */
const BAR = 2
/** From the last job until the measurement begins: connecting, migrating and compiling are over then, in milliseconds. */
const SETTLE = 5000

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '10' }, each: { type: 'string', default: '8' } },
})
const seconds = Number(values.seconds)
const each = Number(values.each)

interface Server {
  pid: number
  url: string
}

async function members(url: string): Promise<ChildProcess[]> {
  const script = fileURLToPath(new URL('member.ts', import.meta.url))
  const children: ChildProcess[] = []
  for (const role of ['worker', 'producer']) {
    for (let i = 0; i < each; i++) {
      const child = fork(script, [url, role])
      const ended = once(child, 'exit').then(() => {
        throw new Error(`a ${role} ended by itself`)
      })
      await Promise.race([once(child, 'message'), ended])
      ended.catch(() => {})
      children.push(child)
    }
  }
  return children
}

/** @returns per cent of one core: the server's, and that of all producers and workers */
async function measure(server: Server, url: string | undefined): Promise<{ server: number; each: number }> {
  const children = url === undefined ? [] : await members(url)
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
  await Promise.all(
    children.map(async (child) => {
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    }),
  )
  return {
    server: percent(after.server - before.server),
    each: children.length === 0 ? 0 : percent(after.each - before.each) / children.length,
  }
}

const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
try {
  const rows: [name: string, server: Server, url: string | undefined, bar: number | undefined][] = [
    ['PostgreSQL, nobody connected', postgres, undefined, undefined],
    ['PostgreSQL', postgres, postgres.url, BAR],
    ['PostgreSQL, without LISTEN (?listen=off)', postgres, `${postgres.url}?listen=off`, undefined],
    ['Redis, nobody connected', redis, undefined, undefined],
    ['Redis', redis, redis.url, undefined],
  ]
  console.log(`${each} producers and ${each} workers with nothing to do, over ${seconds} s; Node ${process.version}, load ${loadavg()[0]?.toFixed(1)} before

| server | its CPU, % of a core | of each producer and worker | bar |
| --- | ---: | ---: | --- |`)
  for (const [name, server, url, bar] of rows) {
    const used = await measure(server, url)
    const verdict = bar === undefined ? '' : `< ${bar} % ${used.server < bar ? '✓' : '✗'}`
    console.log(`| ${name} | ${used.server.toFixed(2)} | ${used.each.toFixed(2)} | ${verdict} |`)
  }
} finally {
  await Promise.all([postgres.stop(), redis.stop()])
}
process.exit(0)
