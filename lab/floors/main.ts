/** `npm run floors`: measures every floor of the design in one run, prints one table, and exits with 1 where one is missed. */
import { existsSync, writeFileSync } from 'node:fs'
import type { Bar } from '../bars.ts'
import { exitOnSignals, markdown, Servers } from '../experiment.ts'
import { optionsFrom, some, whole } from '../flags.ts'
import { generator } from '../load/load.ts'
import { facts } from '../machine.ts'
import { fail, failures, tell } from '../progress.ts'
import type { Floor, Part } from './part.ts'

/** Each loaded only when it is measured. */
const PARTS = {
  sqlite: async () => (await import('./parts/queues.ts')).sqlite,
  memory: async () => (await import('./parts/queues.ts')).memory,
  redis: async () => (await import('./parts/queues.ts')).redis,
  postgres: async () => (await import('./parts/queues.ts')).postgres,
  groups: async () => (await import('./parts/groups.ts')).groups,
  users: async () => (await import('./parts/experiments.ts')).users,
  cache: async () => (await import('./parts/experiments.ts')).cache,
  coalesce: async () => (await import('./parts/experiments.ts')).coalesce,
} satisfies Record<string, () => Promise<Part>>

const flags = {
  only: some(Object.keys(PARTS) as (keyof typeof PARTS)[]),
  runs: whole('times that every figure is measured', '3', '1'),
}
const options = optionsFrom('npm run floors --', flags, process.argv.slice(2))
if (!existsSync(new URL('../node_modules', import.meta.url))) {
  console.error('The packages to measure beside are missing. In the root: npm ci && npm ci --prefix lab')
  process.exit(2)
}
exitOnSignals()

const machine = facts()
const began = performance.now()
const seconds = () => ((performance.now() - began) / 1000).toFixed(0)
const servers = new Servers()
const floors: Floor[] = []
console.log(`Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, load ${machine.load.toFixed(1)} before the run, ${generator}
${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs; medians of ${options.runs} runs, contenders in turn`)
for (const name of options.only) {
  try {
    const part = await PARTS[name]()
    for await (const floor of part(options, servers)) {
      floors.push(floor)
      tell('')
      console.log(`  ${seconds().padStart(4)} s  ${mark(floor.bar)} ${floor.figure}, ${floor.bar.got}`)
    }
  } catch (error) {
    // What the other parts find is still worth having.
    fail(name, error)
  }
}
await servers.stop()

const missed = floors.filter(({ bar }) => mark(bar) === '✗')
const rows = floors.map(({ figure, bar }) => ({
  cells: [figure, bar.text, bar.got, mark(bar)],
  bars: [],
  figures: bar,
}))
console.log(`${markdown({ head: ['figure', 'floor', 'measured', ''], rows })}\n`)
for (const failure of failures) console.log(`✗ not measured: ${failure}`)
console.log(`${floors.length - missed.length} of ${floors.length} floors held, in ${seconds()} s; near: within 15 %.`)
if (options.json !== undefined) {
  const report = { at: new Date().toISOString(), machine, options, floors, failures }
  writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
}
process.exit(missed.length > 0 || failures.length > 0 ? 1 : 0)

function mark({ cleared, near }: Bar): string {
  return cleared ? '✓' : near ? 'near' : '✗'
}
