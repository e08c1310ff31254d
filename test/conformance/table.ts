/** `npm run docs`: runs every suite that all stores share, and writes what each store passed and skipped to docs/contributing/conformance.md. */
import { globSync, writeFileSync } from 'node:fs'
import { run } from 'node:test'
import { fileURLToPath } from 'node:url'
import { globalSetup, globalTeardown } from '../servers/global.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const files = globSync('test/{conformance,model,api}/!(*.deep).test.ts', { cwd: root }).map((file) => root + file)

interface Tally {
  passed: number
  failed: number
  skips: { test: string; reason: string }[]
}
/** By topic, then by store: suites are named `topic: store`. */
const topics = new Map<string, Map<string, Tally>>()
let inside: { name: string; skip: string | boolean | undefined; passed: boolean }[] = []

const ended =
  (passed: boolean) =>
  (event: { name: string; nesting: number; skip?: string | boolean; details: { type?: string | undefined } }) => {
    if (event.details.type !== 'suite') inside.push({ name: event.name, skip: event.skip, passed })
    if (event.nesting > 0) return
    const [, topic, store] = /^(.*): ([\w-]+)$/.exec(event.name) ?? []
    if (event.details.type === 'suite' && topic !== undefined && store !== undefined) {
      const stores = topics.get(topic) ?? new Map<string, Tally>()
      topics.set(topic, stores)
      const tally: Tally = stores.get(store) ?? { passed: 0, failed: 0, skips: [] }
      stores.set(store, tally)
      for (const { name, skip, passed: ok } of inside) {
        if (skip !== undefined && skip !== false) tally.skips.push({ test: name, reason: String(skip) })
        else if (ok) tally.passed++
        else tally.failed++
      }
    }
    inside = []
  }

await globalSetup()
// All stores and all vectors, also those that a usual run leaves out.
process.env.MILLPOND_TEST_VECTORS_EVERY = '1'
process.env.MILLPOND_TEST_STORES = 'all'
// One at a time, since the tests of a suite are told apart only by the order in which they end.
const stream = run({ files, concurrency: 1 })
stream.on('test:pass', ended(true))
stream.on('test:fail', ended(false))
stream.on('test:fail', ({ name, file, details }) => console.error(`failed: ${name} in ${file}`, details.error))
for await (const _ of stream);
await globalTeardown()

const stores = [...new Set([...topics.values()].flatMap((each) => [...each.keys()]))].sort()
const cell = (tally: Tally | undefined) =>
  tally === undefined
    ? '–'
    : [
        `${tally.passed} passed`,
        ...(tally.failed > 0 ? [`${tally.failed} FAILED`] : []),
        ...(tally.skips.length > 0 ? [`${tally.skips.length} skipped`] : []),
      ].join(', ')
const rows = [...topics]
  .sort()
  .map(([topic, each]) => `| ${topic} | ${stores.map((store) => cell(each.get(store))).join(' | ')} |`)
const skips = [...topics]
  .sort()
  .flatMap(([topic, each]) =>
    [...each].flatMap(([store, { skips: list }]) =>
      list.map(({ test, reason }) => `| ${store} | ${topic} | ${test} | ${reason} |`),
    ),
  )
const page = `# Conformance

Every store runs the same tests, against real servers. Written by \`npm run docs\`.

| suite | ${stores.join(' | ')} |
|---|${stores.map(() => '---|').join('')}
${rows.join('\n')}

## Skipped, and why

| store | suite | test | reason |
|---|---|---|---|
${skips.join('\n')}
`
writeFileSync(`${root}docs/contributing/conformance.md`, page)
console.log(page)
const failed = [...topics.values()].some((each) => [...each.values()].some((tally) => tally.failed > 0))
process.exitCode = failed ? 1 : 0
