/** `npm run bench`: measures, prints tables, and with --json writes the figures. The README beside says what each means. */
import { writeFileSync } from 'node:fs'
import { facts } from './facts.ts'
import { options, USAGE } from './options.ts'
import type { Report } from './row.ts'
import { clean } from './runner.ts'
import { runSection } from './section.ts'
import { table } from './table.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
process.once('SIGINT', () => {
  clean()
  process.exit(130)
})

const machine = facts()
const rivals = Object.entries(machine.rivals).map(([name, version]) => `${name} ${version}`)
console.log(`Node ${machine.node}, SQLite ${machine.sqlite}, ${machine.system}
${machine.cores} cores of ${machine.cpu}, load ${machine.load.toFixed(1)} before the run, ${machine.memory}
${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs
${rivals.join(', ')}
${chosen.runs} runs of everything unless a note says otherwise, each in a fresh process, contenders in turn; medians.`)

const tell = (what: string) => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
}
const reports: Report[] = []
try {
  for (const name of chosen.only) {
    try {
      for await (const report of runSection(name, chosen, tell)) {
        tell('')
        reports.push(report)
        console.log(table(report))
      }
    } catch (error) {
      // What the other sections find is still worth having.
      console.error(`\n${name} failed:`, error)
      process.exitCode = 1
    }
  }
} finally {
  clean()
}

const bars = reports.flatMap(({ rows }) => rows.flatMap(({ bar }) => bar ?? []))
console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
if (chosen.json !== undefined) {
  writeFileSync(
    chosen.json,
    `${JSON.stringify({ at: new Date().toISOString(), machine, options: chosen, reports }, null, 2)}\n`,
  )
}
