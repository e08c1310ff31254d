/** Experiment E3: a value from Redis, in many sizes and encodings. Starts the server, loads every variant, prints Markdown. */
import { loadavg } from 'node:os'
import { conclude, exitOnSignals, MACHINE } from '../experiment.ts'
import { redisPlace } from '../rivals/place.ts'
import { inTurn } from '../turns.ts'
import { large } from './large.ts'
import { options, USAGE } from './options.ts'
import { markdown, type Row, rows } from './row.ts'
import { type Outcome, run } from './run.ts'
import { type VariantName, variant } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const { only, counts, runs, seconds, connections } = chosen
const before = loadavg()[0] ?? 0
const redis = await redisPlace(false)
const all: Row[] = []
let huge: Awaited<ReturnType<typeof large>> | undefined
try {
  console.log(`POST / on Fastify, ${connections} connections, ${seconds} s after 1 s of warming up, ${MACHINE}.
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

conclude({
  experiment: 'E3',
  machine: { redis: redis.about, load: before },
  options: chosen,
  rows: all,
  large: huge,
})
process.exit(0)

function measure(count: number): Promise<Map<VariantName, Outcome[]>> {
  const names = only.filter((name) => count <= (variant(name).most ?? Number.POSITIVE_INFINITY))
  const perform = async (name: VariantName) => run(name, count, connections, seconds, await redis.fresh())
  return inTurn(names, runs, perform, `, ${count} items`)
}
