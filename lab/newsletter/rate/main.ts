/** Experiment E2, where the mail server has a rate limit: adding workers stops helping. Starts what it needs, sends, prints Markdown. */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { CORES, conclude, exitOnSignals } from '../../experiment.ts'
import { type Place, postgresPlace, redisPlace } from '../../rivals/place.ts'
import { inTurn } from '../../turns.ts'
import { MAIL_TAKES } from '../settings.ts'
import { options, USAGE } from './options.ts'
import { markdown, row } from './row.ts'
import { run } from './run.ts'
import { LIMIT, PROCESSES, SLOTS } from './settings.ts'
import { type Store, type VariantName, variant } from './variants.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const { only, runs, mails } = chosen
const before = loadavg()[0] ?? 0
const folder = mkdtempSync(join(tmpdir(), 'millpond-rate-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let files = 0
const START: Record<Store, () => Promise<Place>> = {
  array: async () => ({ about: 'an array', fresh: async () => 'array:', stop: async () => {} }),
  sqlite: async () => ({
    about: 'SQLite',
    fresh: async () => `sqlite:${encodeURIComponent(join(folder, `${files++}.db`))}`,
    stop: async () => {},
  }),
  postgres: postgresPlace,
  redis: () => redisPlace(true),
}
const stores = [...new Set(only.map((name) => variant(name).store))]
const places = new Map(await Promise.all(stores.map(async (store) => [store, await START[store]()] as const)))
const about = [...places.values()].map((place) => place.about).join('; ')
try {
  console.log(`${mails} mails wait; each takes ${MAIL_TAKES / 1000} s, and the mail server takes ${LIMIT}/s. ${PROCESSES} senders with ${SLOTS} slots each, ${CORES}.
Node ${process.version}; ${about}. Load ${before.toFixed(1)} before the run.
Mails/s that the server took, the median of ${runs} run(s), variants in turn; else the most of any run.\n`)
  const outcomes = await inTurn(only, runs, perform)
  const rows = only.map((name) => row(name, outcomes.get(name) ?? []))
  console.log(markdown(rows))
  conclude({ experiment: 'E2 with a rate', machine: { servers: about, load: before }, options: chosen, rows })
} finally {
  await Promise.all([...places.values()].map((place) => place.stop()))
}
process.exit(0)

async function perform(name: VariantName) {
  const place = places.get(variant(name).store)
  if (place === undefined) throw new Error(`nothing was started for ${name}`)
  return run(name, mails, await place.fresh())
}
