/** `examples/reports.ts` as it is, in three processes, in front of an API that takes five requests a second. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atLeast, atMost } from '../../bars.ts'
import { machineTime } from '../../clock.ts'
import { ALLOWED, startApi } from '../api.ts'
import type { Part } from '../part.ts'
import { mostWithin } from './rates.ts'

const PROCESSES = 3
const SECONDS = 60
const EXAMPLE = fileURLToPath(new URL('../../../examples/reports.ts', import.meta.url))
/** It imports the package by its name, and gets the sources. */
const SOURCES = new URL('../../../test/web/adapters-source.ts', import.meta.url).href

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill()
  await gone
}

export const report: Part = {
  title: `The newcomer’s reports: \`limits: { rate: '5/s' }\`, ${PROCESSES} processes, counted at the API`,
  head: ['seconds', 'requests', 'requests/s', 'most in any second', 'answered 429'],
  stores: ['sqlite', 'postgres', 'redis'],
  async measure(_, fresh, { quick }) {
    const seconds = quick ? SECONDS / 3 : SECONDS
    const api = await startApi()
    const env = { ...process.env, STORE: await fresh(), API: api.url }
    const children = Array.from({ length: PROCESSES }, (_, n) => {
      const args = ['--import', SOURCES, EXAMPLE, ...(n === 0 ? [`${(seconds + 10) * ALLOWED}`] : [])]
      return spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
    })
    try {
      while (api.arrivals.length === 0) await sleep(50)
      const from = api.arrivals[0] ?? 0
      await sleep(from + seconds * 1000 + 500 - machineTime())
      const times = api.arrivals.filter((at) => at < from + seconds * 1000)
      const rate = times.length / seconds
      const most = mostWithin(times, 1000)
      return [
        {
          cells: [`${seconds}`, `${times.length}`, rate.toFixed(2), `${most}`, `${api.refused}`],
          bars: [atLeast(rate, 4.9, '/s'), atMost(rate, 5.1, '/s'), atMost(api.refused, 0, ' refused')],
        },
      ]
    } finally {
      await Promise.all(children.map(stop))
      api.close()
    }
  },
}
