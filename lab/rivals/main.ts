/** `npm start`: starts the servers, measures, and prints Markdown. */
import { writeFileSync } from 'node:fs'
import { facts } from '../bench/facts.ts'
import { clean } from '../bench/runner.ts'
import { markdown } from './markdown.ts'
import { options, USAGE } from './options.ts'
import { type Place, postgresPlace, redisPlace } from './place.ts'
import { type Page, runSection, type Stage } from './section.ts'

const chosen = options(process.argv.slice(2))
if (chosen === 'help') {
  console.log(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    clean()
    process.exit(1) // the servers' guard ends them
  })
}

const machine = facts(new URL('./', import.meta.url))
const rivals = Object.entries(machine.rivals).map(([name, version]) => `${name} ${version}`)
console.log(`Node ${machine.node}, ${machine.system}, ${machine.cores} cores of ${machine.cpu}, ${machine.memory}, load ${machine.load.toFixed(1)} before the run.
${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs. ${rivals.join(', ')}.

Medians (least–greatest) of ${chosen.runs} runs unless a note says otherwise, each in a fresh process on an empty server, contenders in turn. n ×: what stands in bold is so many times better.`)

const failures: string[] = []
const reports: Page[] = []
const places: Place[] = []
const started = { redis: undefined as Promise<Place> | undefined, postgres: undefined as Promise<Place> | undefined }
const stage: Stage = {
  options: chosen,
  redis: () => (started.redis ??= noted(redisPlace(chosen.fsync))),
  postgres: () => (started.postgres ??= noted(postgresPlace())),
  tell(what) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
  },
  fail(what) {
    failures.push(what)
    console.error(what)
    process.exitCode = 1
  },
}

async function noted(starting: Promise<Place>): Promise<Place> {
  const place = await starting
  places.push(place)
  return place
}

try {
  for (const name of chosen.only) {
    for await (const report of runSection(name, stage)) {
      stage.tell('')
      reports.push(report)
      console.log(markdown(report))
    }
  }
} finally {
  clean()
  await Promise.all(places.map((place) => place.stop()))
}

const bars = reports.flatMap(({ rows }) => rows.flatMap(({ bar }) => bar ?? []))
console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
if (chosen.json !== undefined) {
  const at = new Date().toISOString()
  writeFileSync(chosen.json, `${JSON.stringify({ at, machine, options: chosen, failures, reports }, null, 2)}\n`)
}
