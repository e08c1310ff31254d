/** Experiment E1: `POST /users` writes a row, at once or behind a queue. Starts the servers, loads every variant, prints Markdown. */
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { postgresPlace, redisPlace } from '../rivals/place.ts'
import { generator } from './load.ts'
import { options, USAGE } from './options.ts'
import { cpuMarkdown, markdown, type Row, row } from './row.ts'
import { type Outcome, run, WARMING } from './run.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => process.exit(1)) // the servers' guard ends them, and our children end with us
}

const { only, runs, seconds, connections, patience } = chosen
const before = loadavg()[0] ?? 0
const [redis, postgres] = await Promise.all([redisPlace(chosen.fsync), postgresPlace()])
const rows: Row[] = []
try {
  console.log(`POST /users with a random name, ${seconds} s after ${WARMING} s of warming up, ${generator}, everything on ${availableParallelism()} cores of ${cpus()[0]?.model.trim()}.
Node ${process.version}; ${redis.about}; ${postgres.about}. Load ${before.toFixed(1)} before the run.
Medians of ${runs} runs, each on fresh servers, variants in turn; missing, twice and failed: the most of any run.\n`)
  for (const each of connections) rows.push(...(await measure(each)))
} finally {
  await Promise.all([redis.stop(), postgres.stop()])
}

console.log(markdown(rows, patience))
const cpu = cpuMarkdown(rows)
if (cpu !== undefined) console.log(`\n${cpu}`)
const bars = rows.flatMap((each) => each.bars)
console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
if (chosen.json !== undefined) {
  const machine = { node: process.version, redis: redis.about, postgres: postgres.about, generator, load: before }
  const report = { experiment: 'E1', at: new Date().toISOString(), machine, options: chosen, rows }
  writeFileSync(chosen.json, `${JSON.stringify(report, null, 2)}\n`)
}
process.exit(0)

async function measure(count: number): Promise<Row[]> {
  const outcomes = new Map(only.map((name) => [name, [] as Outcome[]]))
  for (let round = 0; round < runs; round++) {
    for (const name of round % 2 === 0 ? only : only.toReversed()) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${name}, ${count} connections, run ${round + 1}\r`)
      const places = { redis: await redis.fresh(), postgres: await postgres.fresh() }
      outcomes.get(name)?.push(await run(name, count, seconds, patience, places))
    }
  }
  const ceilings = (outcomes.get('nothing') ?? []).map(({ rate }) => rate)
  return only.map((name) => row(name, count, outcomes.get(name) ?? [], ceilings))
}
