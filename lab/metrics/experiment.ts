/**
 * What metrics cost a drain, in CPU time of the process per job. Each drain is a process of its own. The variants take turns in every
 * round, and each is compared with the plain one of its round.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { atMost } from '../bars.ts'
import type { Experiment, Row } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'
import { median } from '../statistics.ts'

const DRAIN = fileURLToPath(new URL('drain.ts', import.meta.url))
/** Most that each may cost, in per cent. */
const MOST = { metrics: 3, 'opentelemetry, ended': 1 } as const
const VARIANTS = Object.keys(MOST) as (keyof typeof MOST)[]

const flags = {
  rounds: whole('in which each variant has a turn', '9', '3'),
  jobs: whole('of a drain', '300000', '20000'),
}

export const metrics: Experiment<typeof flags> = {
  id: 'metrics',
  flags,
  about: ({ rounds, jobs }) =>
    `Drains of ${jobs.toLocaleString('en')} jobs, ${rounds} rounds; CPU time of the process.`,
  async *measure({ rounds, jobs }) {
    for (const [title, share] of [
      ['memory', 1],
      ['sqlite', 0.2],
    ] as const) {
      yield {
        title,
        head: ['variant', 'µs per job', 'more than plain, %'],
        rows: await compared(title, rounds, jobs * share),
      }
    }
  },
}

async function compared(store: 'memory' | 'sqlite', rounds: number, jobs: number): Promise<Row[]> {
  const plain: number[] = []
  const others = VARIANTS.map((variant) => ({ variant, times: [] as number[] }))
  for (let round = 0; round < rounds; round++) {
    tell(`${store}: round ${round + 1} of ${rounds}`)
    const turns = [() => drained(store, 'plain', jobs).then((time) => plain.push(time))]
    for (const { variant, times } of others)
      turns.push(() => drained(store, variant, jobs).then((time) => times.push(time)))
    // Whoever comes first in one round comes last in the next.
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
  }
  const rows: Row[] = [
    { cells: ['plain', median(plain).toFixed(2), ''], bars: [], figures: { variant: 'plain', times: plain } },
  ]
  for (const { variant, times } of others) {
    const more = (median(times.map((time, round) => time / (plain[round] ?? Number.NaN))) - 1) * 100
    const bars = [atMost(Math.max(0, more), MOST[variant], ' %')]
    rows.push({ cells: [variant, median(times).toFixed(2), more.toFixed(1)], bars, figures: { variant, times, more } })
  }
  return rows
}

async function drained(store: 'memory' | 'sqlite', variant: string, jobs: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-metrics-'))
  try {
    const url = store === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}?sync=normal`
    const { stdout } = await promisify(execFile)(process.execPath, [DRAIN, variant, url, `${jobs}`])
    return Number(stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
