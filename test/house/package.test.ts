/** What `npm pack` yields is installed in an empty project and used there, as a user would: compiled, in plain JavaScript. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const project = mkdtempSync(join(tmpdir(), 'millpond-package-'))
process.on('exit', () => rmSync(project, { recursive: true, force: true }))
let files: string[] = []

before(() => {
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', project], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  )
  files = packed.files.map(({ path }: { path: string }) => path)
  const installed = join(project, 'node_modules/millpond')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['xzf', join(project, packed.filename), '-C', installed, '--strip-components=1'])
  // Its dependencies, as npm would lay them beside it; taken from here, so that the test needs no network.
  for (const name of ['msgpackr'])
    cpSync(join(root, 'node_modules', name), join(project, 'node_modules', name), { recursive: true })
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
})

const run = (code: string) => {
  writeFileSync(join(project, 'main.js'), code)
  return execFileSync(process.execPath, ['main.js'], { cwd: project, encoding: 'utf8', timeout: 30_000 })
}

test('it holds the library and the contract, and nothing of the lab, the tests or the examples', () => {
  assert.ok(files.includes('dist/index.js') && files.includes('dist/index.d.ts'))
  assert.ok(files.includes('dist/stores/sqlite/thread.js') && files.includes('contract/sqlite/push.sql'))
  const allowed = /^(dist|contract)\/|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/
  assert.deepEqual(
    files.filter((file) => !allowed.test(file)),
    [],
  )
  assert.deepEqual(
    files.filter((file) => file.startsWith('dist/') && file.endsWith('.ts') && !file.endsWith('.d.ts')),
    [],
  )
})

test('every dependency that the compiled code imports is a declared one', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const code = readFileSync(join(project, 'node_modules/millpond', file), 'utf8')
    for (const [, name] of code.matchAll(/^import .*? from '([^'.][^']*)'/gm)) {
      assert.ok(name?.startsWith('node:') || Object.hasOwn(dependencies, name ?? ''), `${file} imports ${name}`)
    }
  }
})

test('the first example runs in an empty project', () => {
  const example = readFileSync(join(root, 'examples/first.ts'), 'utf8').replaceAll('<{ to: string }>', '')
  const printed = run(example)
  assert.match(printed, /mail to ada@example\.org, attempt 1/)
  assert.match(printed, /sent: true/)
})

test('importing the library loads no store, and a memory pond no SQLite', () => {
  const printed = run(`
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context) } })
    const { Millpond } = await import('millpond')
    const store = loaded.filter((url) => url.includes('/stores/')).length
    const pond = await Millpond.open('memory:')
    await pond.close()
    console.log(JSON.stringify({ store, sqlite: loaded.filter((url) => url.includes('sqlite')) }))
  `)
  assert.deepEqual(JSON.parse(printed), { store: 0, sqlite: [] })
})

test('its subpaths resolve, types beside them', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const [path, entry] of Object.entries<{ types?: string; default?: string } | string>(exports)) {
    if (typeof entry === 'string') continue
    assert.ok(files.includes(entry.types?.slice(2) ?? '') && files.includes(entry.default?.slice(2) ?? ''), path)
  }
})
