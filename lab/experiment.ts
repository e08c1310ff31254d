/** What the programs of the experiments do alike, before and after they measure. */
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import type { Bar } from './bench/row.ts'
import { generator } from './load/load.ts'

export { generator }

/** For the head of a report. */
export const CORES = `everything on ${availableParallelism()} cores of ${cpus()[0]?.model.trim()}`
/** And with what makes the load, where the service is loaded over HTTP. */
export const MACHINE = `${generator}, ${CORES}`

/** The guard of the servers ends them when we exit, and our children end with us. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

export interface Report {
  experiment: string
  machine: Record<string, string | number>
  options: { json: string | undefined }
  rows: readonly { bars: readonly Bar[] }[]
  [more: string]: unknown
}

/** Says how many bars are cleared, and writes the figures for programs, if they are wanted. */
export function conclude({ experiment, machine, ...rest }: Report): void {
  const bars = rest.rows.flatMap((row) => row.bars)
  console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
  if (rest.options.json === undefined) return
  const all = { node: process.version, generator, ...machine }
  const report = { experiment, at: new Date().toISOString(), machine: all, ...rest }
  writeFileSync(rest.options.json, `${JSON.stringify(report, null, 2)}\n`)
}
