/** Experiment E4: `GET /` asks a slow upstream, each request by itself or one for all. Starts the servers, loads every variant, prints Markdown. */
import { loadavg } from 'node:os'
import { conclude, exitOnSignals, MACHINE } from '../experiment.ts'
import { type Place, postgresPlace, redisPlace } from '../rivals/place.ts'
import { inTurn } from '../turns.ts'
import { options, USAGE } from './options.ts'
import { markdown, type Row, rows } from './row.ts'
import { run, WARMING } from './run.ts'
import { type VariantName, variant } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const { only, runs, seconds, connections } = chosen
const before = loadavg()[0] ?? 0
const needs = (store: 'redis' | 'postgres') => only.some((name) => variant(name).store === store)
const redis = needs('redis') ? await redisPlace(false) : undefined
const postgres = needs('postgres') ? await postgresPlace() : undefined
const stores = [redis, postgres].filter((place) => place !== undefined)
let all: Row[]
try {
  const about = [`Node ${process.version}`, ...stores.map((place) => place.about)].join('; ')
  console.log(`GET / on Express, ${connections} connections, ${seconds} s after ${WARMING} s of warming up, ${MACHINE}.
${about}. Load ${before.toFixed(1)} before the run.
Medians of ${runs} runs, each on fresh servers, variants in turn; at once and failed: the most of any run.\n`)
  all = rows(connections, await inTurn(only, runs, perform))
} finally {
  await Promise.all(stores.map((place) => place.stop()))
}

console.log(markdown(all))
const machine = Object.fromEntries(stores.map(({ about }) => [about.split(' ')[0], about]))
conclude({ experiment: 'E4', machine: { ...machine, load: before }, options: chosen, rows: all })
process.exit(0)

async function perform(name: VariantName) {
  const places: Record<'redis' | 'postgres', Place | undefined> = { redis, postgres }
  const { store } = variant(name)
  return run(name, connections, seconds, (store && (await places[store]?.fresh())) ?? '')
}
