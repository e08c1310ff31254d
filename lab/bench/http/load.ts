/** Loads a service from a process of its own: wrk where it is installed, as it leaves the server more of the CPU, else autocannon. */
import { execFile, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Outcome } from '../measure.ts'

const run = promisify(execFile)
const SCRIPT = fileURLToPath(new URL('post.lua', import.meta.url))
const WRK = process.env.WRK ?? 'wrk'

interface Generator {
  name: string
  load(url: string, connections: number, seconds: number): Promise<Outcome>
}

let known: Generator | undefined

export function generator(): Generator {
  known ??= spawnSync(WRK, ['--version']).error === undefined ? wrk : autocannon
  return known
}

/** @returns `rate` in requests/s, `p50` and `p99` in ms @throws when a request failed */
export function load(url: string, connections: number, seconds: number): Promise<Outcome> {
  return generator().load(url, connections, seconds)
}

const wrk: Generator = {
  name: 'wrk, 1 thread',
  async load(url, connections, seconds) {
    const { stdout } = await run(WRK, ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', SCRIPT, url])
    const [requests = 0, duration = 0, p50 = 0, p99 = 0, failed = 0] = (/RESULT (.*)/.exec(stdout)?.[1] ?? '')
      .split(' ')
      .map(Number)
    if (requests === 0 || failed > 0) throw new Error(`wrk: ${failed} of ${requests} requests failed\n${stdout}`)
    return { rate: (requests / duration) * 1e6, p50: p50 / 1000, p99: p99 / 1000 }
  },
}

interface AutocannonResult {
  requests: { average: number; total: number }
  latency: { p50: number; p99: number }
  errors: number
  non2xx: number
}

const autocannon: Generator = {
  name: 'autocannon',
  async load(url, connections, seconds) {
    const program = createRequire(import.meta.url).resolve('autocannon')
    const request = ['-m', 'POST', '-H', 'content-type=application/json', '-b', '{"to":"someone@example.org"}']
    const args = [program, '-c', String(connections), '-d', String(seconds), '-j', '-n', ...request, url]
    const { stdout } = await run(process.execPath, args, { maxBuffer: 1e8 })
    const result = JSON.parse(stdout) as AutocannonResult
    if (result.errors + result.non2xx > 0)
      throw new Error(`autocannon: ${result.errors + result.non2xx} requests failed`)
    return { rate: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 }
  },
}
