import { setTimeout as sleep } from 'node:timers/promises'
import { generator, load } from '../../load/load.ts'
import { type Mode, startServer } from '../http/start.ts'
import type { Outcome } from '../measure.ts'
import { atLeast, type Row } from '../row.ts'
import { summarise } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING, median, type Summary } from '../statistics.ts'

const CONNECTIONS = 64
const LEAST = 0.6
const POST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"to":"someone@example.org"}',
  connections: CONNECTIONS,
}

export const http: Section = async function* ({ runs, quick }, tell) {
  const seconds = quick ? 2 : 5
  const modes: Mode[] = ['push', 'plain', 'work']
  const outcomes: Record<Mode, Outcome[]> = { push: [], plain: [], work: [] }
  for (let run = 0; run < runs; run++) {
    for (const mode of run % 2 === 0 ? modes : modes.toReversed()) {
      tell(`http: ${mode}, run ${run + 1}`)
      outcomes[mode].push(await once(mode, seconds))
    }
  }
  const [push = {}, plain = {}, work = {}] = modes.map((mode) => summarise(outcomes[mode]))
  const ratios = outcomes.push.map((outcome, run) => (outcome.rate ?? 0) / (outcomes.plain[run]?.rate ?? 0))
  const row = (name: string, ours: Record<string, Summary>, key: string, unit: Row['unit']): Row => {
    return {
      name,
      unit,
      ours: ours[key] ?? MISSING,
      rivals: [{ name: 'without the push', figure: plain[key] ?? MISSING }],
    }
  }
  yield {
    title: `POST → 202 on Hono, ${CONNECTIONS} connections, SQLite FULL`,
    rows: [
      { ...row('pushed durably', push, 'rate', 'req/s'), bar: atLeast(median(ratios), LEAST, ' ×') },
      row('pushed durably, p99', push, 'p99', 'ms'),
      row('pushed, and worked off by the same process', work, 'rate', 'req/s'),
      row('pushed, and worked off, p99', work, 'p99', 'ms'),
    ],
    notes: [
      `${generator}, ${seconds} s a run after 1 s of warming up; server and generator are a process each, a fresh server per run`,
      'the bar is on the median of the ratios of each run; with 2 cores the generator and the store thread share one',
    ],
  }
}

async function once(mode: Mode, seconds: number): Promise<Outcome> {
  const server = await startServer(mode)
  try {
    await load(server.url, { ...POST, seconds: 1 })
    await sleep(100)
    const { failed, ...outcome } = await load(server.url, { ...POST, seconds })
    if (failed > 0 || outcome.rate === 0) throw new Error(`http: ${failed} requests failed, ${outcome.rate} requests/s`)
    return outcome
  } finally {
    await server.stop()
  }
}
