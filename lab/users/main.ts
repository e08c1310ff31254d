/** Experiment E1: `POST /users` writes a row, at once or behind a queue. Starts the servers, loads every variant, prints Markdown. */
import { loadavg } from 'node:os'
import { conclude, exitOnSignals, MACHINE } from '../experiment.ts'
import { postgresPlace, redisPlace } from '../rivals/place.ts'
import { inTurn } from '../turns.ts'
import { options, USAGE } from './options.ts'
import { cpuMarkdown, markdown, type Row, row } from './row.ts'
import { run, WARMING } from './run.ts'
import type { VariantName } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const { only, runs, seconds, connections, patience } = chosen
const before = loadavg()[0] ?? 0
const [redis, postgres] = await Promise.all([redisPlace(chosen.fsync), postgresPlace()])
const rows: Row[] = []
try {
  console.log(`POST /users with a random name, ${seconds} s after ${WARMING} s of warming up, ${MACHINE}.
Node ${process.version}; ${redis.about}; ${postgres.about}. Load ${before.toFixed(1)} before the run.
Medians of ${runs} runs, each on fresh servers, variants in turn; missing, twice and failed: the most of any run.\n`)
  for (const each of connections) rows.push(...(await measure(each)))
} finally {
  await Promise.all([redis.stop(), postgres.stop()])
}

console.log(markdown(rows, patience))
const cpu = cpuMarkdown(rows)
if (cpu !== undefined) console.log(`\n${cpu}`)
conclude({
  experiment: 'E1',
  machine: { redis: redis.about, postgres: postgres.about, load: before },
  options: chosen,
  rows,
})
process.exit(0)

async function measure(count: number): Promise<Row[]> {
  const perform = async (name: VariantName) => {
    const places = { redis: await redis.fresh(), postgres: await postgres.fresh() }
    return run(name, count, seconds, patience, places)
  }
  const outcomes = await inTurn(only, runs, perform, `, ${count} connections`)
  const ceilings = (outcomes.get('nothing') ?? []).map(({ rate }) => rate)
  return only.map((name) => row(name, count, outcomes.get(name) ?? [], ceilings))
}
