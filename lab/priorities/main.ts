/** Experiment E5: long jobs must not hold up short ones. Starts the servers, plays both scenarios with every variant, prints Markdown. */
import { loadavg } from 'node:os'
import { CORES, conclude, exitOnSignals } from '../experiment.ts'
import { type Place, postgresPlace, redisPlace } from '../rivals/place.ts'
import { inTurn } from '../turns.ts'
import { options, USAGE } from './options.ts'
import { rabbitmqPlace } from './rabbitmq.ts'
import { markdown, type Row, row } from './row.ts'
import { run } from './run.ts'
import { SCENARIOS, type ScenarioName } from './scenarios.ts'
import { PROCESSES, SHORT, SLOTS } from './settings.ts'
import { type Store, type VariantName, variant } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const START: Record<Store, () => Promise<Place>> = {
  postgres: postgresPlace,
  redis: () => redisPlace(true),
  rabbitmq: rabbitmqPlace,
}
const { only, runs, long } = chosen
const before = loadavg()[0] ?? 0
const stores = [...new Set(only.map((name) => variant(name).store))]
const places = new Map(await Promise.all(stores.map(async (store) => [store, await START[store]()] as const)))
const about = [...places.values()].map((place) => place.about).join('; ')
const scenarios = Object.keys(SCENARIOS) as ScenarioName[]
const rows: Row[] = []
try {
  console.log(`Long jobs take ${long / 1000} s, urgent ones ${SHORT} ms; ${PROCESSES} consumers with ${SLOTS} slots each, ${CORES}.
Node ${process.version}; ${about}. Load ${before.toFixed(1)} before the run.
The wait of an urgent job is from the call of push in one process to the start of its handler in another; ${runs} run(s), variants in turn.\n`)
  for (const scenario of scenarios) {
    const outcomes = await inTurn(only, runs, (name) => perform(name, scenario), `, ${SCENARIOS[scenario].title}`)
    rows.push(...only.map((name) => row(name, scenario, outcomes.get(name) ?? [])))
    console.log(`${markdown(scenario, rows)}\n`)
  }
} finally {
  await Promise.all([...places.values()].map((place) => place.stop()))
}
conclude({ experiment: 'E5', machine: { servers: about, load: before }, options: chosen, rows })
process.exit(0)

async function perform(name: VariantName, scenario: ScenarioName) {
  const place = places.get(variant(name).store)
  if (place === undefined) throw new Error(`nothing was started for ${name}`)
  return run(name, scenario, long, await place.fresh())
}
