/** Experiment E3: a value from Redis, in many sizes and encodings. Starts the server, loads every variant, prints Markdown. */
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { redisPlace } from '../rivals/place.ts'
import { large } from './large.ts'
import { generator } from './load.ts'
import { options, USAGE } from './options.ts'
import { markdown, type Row, rows } from './row.ts'
import { type Outcome, run } from './run.ts'
import { type VariantName, variant } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => process.exit(1)) // the servers' guard ends them, and our children end with us
}

const { only, counts, runs, seconds, connections } = chosen
const before = loadavg()[0] ?? 0
const redis = await redisPlace(false)
const all: Row[] = []
let huge: Awaited<ReturnType<typeof large>> | undefined
try {
  console.log(`POST / on Fastify, ${connections} connections, ${seconds} s after 1 s of warming up, ${generator}, everything on ${availableParallelism()} cores of ${cpus()[0]?.model.trim()}.
Node ${process.version}; ${redis.about}. Load ${before.toFixed(1)} before the run.
Medians of ${runs} runs, each in a fresh process on an empty Redis, variants in turn; failed: the most of any run.\n`)
  for (const count of counts) all.push(...rows(count, await measure(count)))
  if (all.length > 0) console.log(markdown(all))
  if (chosen.large) {
    huge = await large(await redis.fresh())
    console.log(`\n${huge.text}`)
  }
} finally {
  await redis.stop()
}

const bars = all.flatMap((each) => each.bars)
console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
if (chosen.json !== undefined) {
  const machine = { node: process.version, redis: redis.about, generator, load: before }
  const report = { experiment: 'E3', at: new Date().toISOString(), machine, options: chosen, rows: all, large: huge }
  writeFileSync(chosen.json, `${JSON.stringify(report, null, 2)}\n`)
}
process.exit(0)

async function measure(count: number): Promise<Map<VariantName, Outcome[]>> {
  const names = only.filter((name) => count <= (variant(name).most ?? Number.POSITIVE_INFINITY))
  const outcomes = new Map(names.map((name) => [name, [] as Outcome[]]))
  for (let round = 0; round < runs; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${name}, ${count} items, run ${round + 1}\r`)
      outcomes.get(name)?.push(await run(name, count, connections, seconds, await redis.fresh()))
    }
  }
  return outcomes
}
