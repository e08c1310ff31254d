/** One report that outgrows its memory among many others, with a supervisor that starts a dead consumer again. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Millpond } from '../../../src/index.ts'
import { freshFolder } from '../../data.ts'
import { Program } from '../../newsletter/surge/program.ts'
import type { Report } from './reports.ts'
import { MEMORY, QUEUE, SETTINGS } from './settings.ts'

const CONSUMER = fileURLToPath(new URL('consumer.ts', import.meta.url))
const CHUNK = 500
const POLL = 50
const PATIENCE = 120_000

export interface Outcome {
  /** Reports but for the one that grows. */
  others: number
  done: number
  /** Runs beyond the first of the same report. */
  twice: number
  /** Consumers that died. */
  crashes: number
  /** Why the one report is dead; "not dead" if it still is not when nobody waits any longer. */
  reason: string
  seconds: number
}

export async function run(others: number, url: string, isolated: boolean): Promise<Outcome> {
  const log = join(freshFolder(), 'runs')
  writeFileSync(log, '')
  const pond = await Millpond.open(url)
  const reports = pond.queue<Report>(QUEUE, SETTINGS)
  const all = Array.from({ length: others + 1 }, (_, n): Report => ({ n, log, grows: n === Math.floor(others / 2) }))
  let bad = ''
  for (let at = 0; at < all.length; at += CHUNK) {
    const pushed = await reports.pushMany(all.slice(at, at + CHUNK))
    const grows = all.slice(at, at + CHUNK).findIndex((report) => report.grows)
    bad = pushed[grows]?.id ?? bad
  }
  const start = () =>
    Program.start({
      name: 'consumer of reports',
      command: process.execPath,
      args: [
        `--max-old-space-size=${MEMORY}`,
        '--disable-warning=MillpondWarning',
        CONSUMER,
        url,
        isolated ? 'isolated' : 'plain',
      ],
    })
  const began = performance.now()
  const consumers = [await start()]
  try {
    for (;;) {
      const { counts } = await reports.stats()
      const isOver = counts.scheduled + counts.waiting + counts.running === 0
      if (isOver || performance.now() > began + PATIENCE) break
      if (consumers.at(-1)?.trouble !== undefined) consumers.push(await start())
      await sleep(POLL)
    }
    const seconds = (performance.now() - began) / 1000
    const runs = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    const done = new Set(runs).size
    const job = await pond.job(bad)
    return {
      ...{ others, done, twice: runs.length - done, seconds },
      crashes: consumers.filter(({ trouble }) => trouble !== undefined).length,
      reason: job?.state === 'dead' ? (job.error?.code ?? job.error?.name ?? 'dead') : 'not dead',
    }
  } finally {
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    await pond.close()
  }
}
