import { setTimeout as sleep } from 'node:timers/promises'
import { atLeast } from '../../bars.ts'
import { Child } from '../../child.ts'
import { generator, type Load, load } from '../../load/load.ts'
import { median, summary } from '../../statistics.ts'
import { inTurn } from '../../turns.ts'
import type { Row } from '../row.ts'
import type { Section } from '../section.ts'

const CONNECTIONS = 64
const LEAST = 0.6
const POST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"to":"someone@example.org"}',
  connections: CONNECTIONS,
}
/** `plain`: answers without pushing. `push`: once the store has the job. `work`: as `push`, and a worker drains the queue. */
const MODES = ['push', 'plain', 'work'] as const
type Mode = (typeof MODES)[number]
const SERVER = new URL('../http/server.ts', import.meta.url)

export const http: Section = async function* ({ runs, quick }, stage) {
  const seconds = quick ? 2 : 5
  const place = await stage.place('sqlite')
  const outcomes = await inTurn(
    MODES,
    runs,
    async (mode) => once(mode, await place.fresh(), seconds),
    (mode) => `http, ${mode}`,
  )
  const of = (mode: Mode) => outcomes.get(mode) ?? []
  const plain = of('plain')
  const ratios = of('push').map(({ rate }, run) => rate / (plain[run]?.rate ?? Number.NaN))
  const row = (name: string, mode: Mode, key: Exclude<keyof Load, 'curve'>, unit: Row['unit']): Row => ({
    name,
    unit,
    ours: summary(of(mode).map((run) => run[key])),
    rivals: [{ name: 'without the push', figure: summary(plain.map((run) => run[key])) }],
  })
  yield {
    title: `POST → 202 on Hono, ${CONNECTIONS} connections, SQLite FULL`,
    rows: [
      { ...row('pushed durably', 'push', 'rate', 'req/s'), bar: atLeast(median(ratios), LEAST, ' ×') },
      row('pushed durably, p99', 'push', 'p99', 'ms'),
      row('pushed, and worked off by the same process', 'work', 'rate', 'req/s'),
      row('pushed, and worked off, p99', 'work', 'p99', 'ms'),
    ],
    notes: [
      `${generator}, ${seconds} s a run after 1 s of warming up; server and generator are a process each, a fresh server per run`,
      'the bar is on the median of the ratios of each run; with 2 cores the generator and the store thread share one',
    ],
  }
}

async function once(mode: Mode, store: string, seconds: number): Promise<Load> {
  const server = await Child.start(SERVER, [mode, store])
  try {
    const url = `http://127.0.0.1:${server.port}/emails`
    await load(url, { ...POST, seconds: 1 })
    await sleep(100)
    const loaded = await load(url, { ...POST, seconds })
    if (loaded.failed > 0 || loaded.rate === 0) throw new Error(`${loaded.failed} requests failed, ${loaded.rate}/s`)
    return loaded
  } finally {
    await server.stop()
  }
}
