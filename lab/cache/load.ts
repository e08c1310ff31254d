/** Loads the service from a process of its own, in a closed loop: wrk where it is installed, else autocannon. */
import { execFile, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SCRIPT = fileURLToPath(new URL('post.lua', import.meta.url))
const WRK = process.env.WRK ?? 'wrk'

export interface Load {
  /** Requests/s. */
  rate: number
  /** Milliseconds. */
  p50: number
  p99: number
  /** Not answered with 2xx, or not within 2 s or, with autocannon, 10 s. */
  failed: number
}
type Generate = (url: string, connections: number, seconds: number) => Promise<Load>

const wrk: Generate = async (url, connections, seconds) => {
  const { stdout } = await run(WRK, ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', SCRIPT, url])
  const [requests = 0, duration = 1, p50 = 0, p99 = 0, failed = 0] = (/RESULT (.*)/.exec(stdout)?.[1] ?? '')
    .split(' ')
    .map(Number)
  return { rate: (requests / duration) * 1e6, p50: p50 / 1000, p99: p99 / 1000, failed }
}

interface AutocannonResult {
  requests: { average: number }
  latency: { p50: number; p99: number }
  errors: number
  non2xx: number
}

const autocannon: Generate = async (url, connections, seconds) => {
  const program = createRequire(import.meta.url).resolve('autocannon')
  const args = [program, '-c', String(connections), '-d', String(seconds), '-j', '-n', '-m', 'POST', url]
  const { stdout } = await run(process.execPath, args, { maxBuffer: 1e8 })
  const { requests, latency, errors, non2xx } = JSON.parse(stdout) as AutocannonResult
  return { rate: requests.average, p50: latency.p50, p99: latency.p99, failed: errors + non2xx }
}

const hasWrk = spawnSync(WRK, ['--version']).error === undefined
export const generator = hasWrk ? 'wrk, 1 thread' : 'autocannon'
export const load: Generate = hasWrk ? wrk : autocannon
