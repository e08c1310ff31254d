/**
 * A TypeScript project as `npm init -y` makes it, with the package and the types of Node, and none of the optional packages: its programs are
 * checked without `skipLibCheck`, compiled to ES modules and to CommonJS, and run.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { millpond, startMillpond } from '../cli/fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { faultsOf, layInstalled, layPackage, PACKING, ROOT } from './published.ts'

const execute = promisify(execFile)
const project = sharedFolder()
const program = join(project, 'node_modules/millpond/dist/cli/main.js')
const KINDS = { 'an ES module': 'mts', CommonJS: 'cts' } as const

/** All but the one whose optional package is no client: who imports it has the package. */
const ENTRIES = Object.entries(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).exports).flatMap(
  ([path, entry]) => (typeof entry === 'string' || path === './opentelemetry' ? [] : [path.replace('.', 'millpond')]),
)

before(
  async () => {
    await layPackage(project, [], 'commonjs')
    for (const types of ['@types/node', 'undici-types']) layInstalled(project, types)
    const imports = ENTRIES.map((entry, at) => `import * as entry${at} from '${entry}'`).join('\n')
    const all = ENTRIES.map((_, at) => `entry${at}`).join(', ')
    const entries = `${imports}\nconsole.log([${all}].flatMap(Object.keys).length)\n`
    for (const kind of Object.values(KINDS)) {
      copyFileSync(join(ROOT, 'test/house/app/tour.ts'), join(project, `tour.${kind}`))
      writeFileSync(join(project, `entries.${kind}`), entries)
    }
  },
  { timeout: PACKING },
)

async function run(file: string, ...args: string[]): Promise<string[]> {
  const { stdout, stderr } = await execute(process.execPath, [join(project, 'built', file), ...args], {
    timeout: 60_000,
  })
  assert.equal(stderr, '')
  return stdout.trimEnd().split('\n')
}

test('its programs have no fault, nor have the declarations of the package', { timeout: 120_000 }, async () => {
  const common = { verbatimModuleSyntax: false, erasableSyntaxOnly: false, allowImportingTsExtensions: false }
  const options = { ...common, noEmit: false, rewriteRelativeImportExtensions: false, outDir: 'built', rootDir: '.' }
  assert.ok(ENTRIES.length >= 15)
  assert.deepEqual(await faultsOf(project, options), [])
})

for (const [kind, ending] of Object.entries(KINDS)) {
  const compiled = ending.replace('t', 'j')

  test(`every entry point is imported by ${kind}`, async () => {
    const [names] = await run(`entries.${compiled}`)
    assert.ok(Number(names) > 30, names)
  })

  test(`a queue, a schedule and a graph in ${kind}; the command line and the dashboard show them`, async () => {
    const store = `sqlite:${join(project, `${ending}.db`)}`
    assert.deepEqual(await run(`tour.${compiled}`, store), ['sent to ada@example.org', 'a beat 1', '2'])

    const { out } = millpond(['stats', '--store', store], {}, program)
    assert.match(out, /mails[\s\S]*beats|beats[\s\S]*mails/)
    const { origin, end } = await startMillpond(['dashboard', '--store', store, '--port', '0'], {}, program)
    const page = await fetch(origin)
    assert.match(await page.text(), /<script[^>]* src="[^"]*page\.js/)
    assert.equal((await fetch(`${origin}/page.js`)).status, 200)
    assert.equal(await end(), 0)
  })
}
