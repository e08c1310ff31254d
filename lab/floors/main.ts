/** `npm run floors`: measures every floor of the design in one run, prints one table, and exits with 1 where one is missed. */
import { existsSync, writeFileSync } from 'node:fs'
import { facts } from '../bench/facts.ts'
import { clean } from '../bench/runner.ts'
import { exitOnSignals, generator } from '../experiment.ts'
import { placeOf, type StoreName } from '../limits/stores.ts'
import type { Place } from '../rivals/place.ts'
import { options, PARTS, type PartName, USAGE } from './options.ts'
import type { Floor, Part, Stage } from './part.ts'
import { mark, table } from './table.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
process.once('exit', clean)
exitOnSignals()

/** Each loaded only when it is measured. */
const LOADERS: Record<PartName, () => Promise<Part>> = {
  sqlite: async () => (await import('./parts/sqlite.ts')).sqlite,
  memory: async () => (await import('./parts/memory.ts')).memory,
  redis: async () => (await import('./parts/servers.ts')).redis,
  postgres: async () => (await import('./parts/servers.ts')).postgres,
  groups: async () => (await import('./parts/groups.ts')).groups,
  users: async () => (await import('./parts/users.ts')).users,
  cache: async () => (await import('./parts/cache.ts')).cache,
  coalesce: async () => (await import('./parts/coalesce.ts')).coalesce,
}

const lacking = ['', 'rivals/'].filter((folder) => !existsSync(new URL(`../${folder}node_modules`, import.meta.url)))
if (lacking.length > 0) {
  const commands = lacking.map((folder) => `npm ci --prefix lab/${folder}`.replace(/\/$/, ''))
  console.error(`The packages to measure beside are missing. In the root: npm ci && ${commands.join(' && ')}`)
  process.exit(1)
}
const machine = facts()
const began = performance.now()
const places = new Map<StoreName, Promise<Place>>()
const floors: Floor[] = []
const failures: string[] = []
const stage: Stage = {
  runs: chosen.runs,
  quick: chosen.quick,
  scale: chosen.quick ? 0.05 : 0.2,
  seconds: chosen.quick ? 1 : 2,
  warming: chosen.quick ? 1 : 2,
  place(store) {
    const place = places.get(store) ?? placeOf(store, false)
    places.set(store, place)
    return place
  },
  tell(what) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
  },
  fail: (what) => failures.push(what),
}

console.log(`Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, load ${machine.load.toFixed(1)} before the run, ${generator}
${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs; medians of ${chosen.runs} runs, contenders in turn`)
for (const name of PARTS.filter((each) => chosen.only.includes(each))) {
  const from = performance.now()
  try {
    const part = await LOADERS[name]()
    for await (const floor of part(stage)) {
      floors.push(floor)
      stage.tell('')
      console.log(`  ${mark(floor.bar)} ${floor.figure}: ${floor.bar.got}`)
    }
  } catch (error) {
    // What the other parts find is still worth having.
    stage.fail(`${name}: ${error instanceof Error ? error.message : String(error)}`)
  }
  console.log(`  ${name} took ${((performance.now() - from) / 1000).toFixed(0)} s`)
}
await Promise.all([...places.values()].map(async (place) => (await place).stop()))

const seconds = (performance.now() - began) / 1000
const missed = floors.filter(({ bar }) => mark(bar) === '✗')
console.log(`\n${table(floors)}\n`)
for (const failure of failures) console.log(`✗ not measured: ${failure}`)
console.log(
  `${floors.length - missed.length} of ${floors.length} floors held, in ${seconds.toFixed(0)} s; near: within 15 %.`,
)
if (chosen.json !== undefined) {
  const report = { at: new Date().toISOString(), machine, options: chosen, seconds, floors, failures }
  writeFileSync(chosen.json, `${JSON.stringify(report, null, 2)}\n`)
}
process.exit(missed.length > 0 || failures.length > 0 ? 1 : 0)
