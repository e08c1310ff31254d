import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import type { Generate } from './load.ts'

interface Result {
  requests: { average: number }
  latency: Record<'p10' | 'p25' | 'p50' | 'p75' | 'p90' | 'p97_5' | 'p99' | 'p99_9', number>
  errors: number
  non2xx: number
}

export const autocannon: Generate = async (url, { method = 'GET', headers = {}, body, connections, seconds }) => {
  const program = createRequire(import.meta.url).resolve('autocannon')
  const sent = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  // `-I`: each `[<id>]` becomes another one.
  const content = body === undefined ? [] : ['-I', '-b', body]
  const amount = ['-c', String(connections), '-d', String(seconds), '-t', '10']
  const args = [program, ...amount, '-j', '-n', '-m', method, ...sent, ...content, url]
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 })
  const { requests, latency, errors, non2xx } = JSON.parse(stdout) as Result
  const shares = { p10: 0.1, p25: 0.25, p50: 0.5, p75: 0.75, p90: 0.9, p97_5: 0.975, p99: 0.99, p99_9: 0.999 } as const
  const curve = (Object.keys(shares) as (keyof typeof shares)[]).map((name): [number, number] => [
    shares[name],
    latency[name],
  ])
  const { p50, p97_5: p95, p99 } = latency
  // It knows no p95; its p97.5 is no smaller.
  return { rate: requests.average, p50, p95, p99, failed: errors + non2xx, curve }
}
