/** Experiment E6: limits over processes, turns between groups, and what they cost. Starts the servers, prints Markdown. */
import { loadavg } from 'node:os'
import { CORES, conclude, exitOnSignals } from '../experiment.ts'
import { markdown, verdicts } from '../markdown.ts'
import type { Place } from '../rivals/place.ts'
import { options, USAGE } from './options.ts'
import type { Row } from './part.ts'
import { partOf } from './parts.ts'
import { placeOf, type StoreName } from './stores.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
exitOnSignals()

const before = loadavg()[0] ?? 0
const places = new Map<StoreName, Place>()
const rows: Row[] = []
try {
  for (const store of chosen.store) places.set(store, await placeOf(store, chosen.fsync))
  const abouts = [...places.values()].map(({ about }) => about).join('; ')
  console.log(
    `Limits and turns, ${CORES}.\nNode ${process.version}; ${abouts}. Load ${before.toFixed(1)} before the run.`,
  )
  for (const name of chosen.only) {
    const part = await partOf(name)
    const own: Row[] = []
    try {
      for (const [store, place] of places) {
        if (!part.stores.includes(store)) continue
        const measured = await part.measure(store, () => place.fresh(), chosen)
        own.push(...measured.map(({ cells, bars }) => ({ part: name, cells: [store, ...cells], bars })))
      }
    } finally {
      // Where one store fails, the others' figures are told all the same.
      const lines = own.map(({ cells, bars }) => [...cells, verdicts(bars)])
      console.log(`\n### ${part.title}\n\n${markdown(['', ...part.head, 'bars'], lines)}`)
    }
    rows.push(...own)
  }
} finally {
  await Promise.all([...places.values()].map((place) => place.stop()))
}
conclude({ experiment: 'E6', machine: { load: before }, options: chosen, rows })
process.exit(0)
