import { execFile, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Generate } from './load.ts'

const WRK = process.env.WRK ?? 'wrk'
const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url))

export const hasWrk = spawnSync(WRK, ['--version']).error === undefined

export const wrk: Generate = async (url, { method = 'GET', headers = {}, body = '', connections, seconds }) => {
  const sent = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const amount = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s']
  const seed = String(randomInt(2 ** 31))
  const { stdout } = await promisify(execFile)(WRK, [...amount, '-s', SCRIPT, ...sent, url, '--', method, body, seed])
  const figures = (/RESULT (.*)/.exec(stdout)?.[1] ?? '').split(' ').map(Number)
  const [requests = 0, duration = 0, p50 = 0, p95 = 0, p99 = 0, failed = 0] = figures
  if (duration === 0) throw new Error(`wrk tells no result\n${stdout}`)
  const curve = (/CURVE (.*)/.exec(stdout)?.[1] ?? '').split(' ').map((pair): [number, number] => {
    const [share = 0, latency = 0] = pair.split(':').map(Number)
    return [share / 100, latency / 1000]
  })
  return { rate: (requests / duration) * 1e6, p50: p50 / 1000, p95: p95 / 1000, p99: p99 / 1000, failed, curve }
}
