/** What `npm pack` yields is installed in an empty project and used there, as a user would: compiled, in plain JavaScript. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join, posix } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startMillpond } from '../cli/fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const project = sharedFolder()
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
  // Its dependencies come from where they are installed already, so that the test needs no registry.
  const names = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies)
  const near = Object.fromEntries(names.map((name) => [name, `file:${join(root, 'node_modules', name)}`]))
  const manifest = {
    type: 'module',
    dependencies: { millpond: `file:${packed.filename}`, ...near },
    overrides: Object.fromEntries(names.map((name) => [name, `$${name}`])),
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  const offline = ['--offline', '--cache', join(project, 'cache'), '--no-audit', '--no-fund']
  npm('npm', 'install', '--install-links', '--ignore-scripts', ...offline)
})

/** In the project, on the Node that runs this test. */
function npm(program: 'npm' | 'npx', ...args: string[]): string {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
  return execFileSync(program, args, { cwd: project, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

const run = (code: string) => {
  writeFileSync(join(project, 'main.js'), code)
  return execFileSync(process.execPath, ['main.js'], { cwd: project, encoding: 'utf8', timeout: 30_000 })
}

test('it holds the library, its documentation, the examples and the contract, and nothing of the lab, the tests or the decisions', () => {
  assert.ok(files.includes('dist/index.js') && files.includes('dist/index.d.ts'))
  assert.ok(
    files.includes('dist/stores/sqlite/connection/thread-code.js') && files.includes('contract/sqlite/push.sql'),
  )
  const allowed =
    /^(dist|contract(?!\/vectors)|docs(?!\/decisions|\/contributing)|examples|monitoring)\/|^(package\.json|[A-Z]+\.md|LICENSE)$/
  assert.deepEqual(
    files.filter((file) => !allowed.test(file)),
    [],
  )
  assert.deepEqual(
    files.filter((file) => file.startsWith('dist/') && file.endsWith('.ts') && !file.endsWith('.d.ts')),
    [],
  )
})

test('the links of its pages lead to what it holds, or to the web', () => {
  const isThere = (path: string) => files.some((file) => file === path || file.startsWith(`${path}/`))
  const dead: string[] = []
  for (const page of files.filter((file) => file.endsWith('.md'))) {
    for (const [, link = ''] of readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)) {
      const path = posix.join(posix.dirname(page), link.replace(/#.*/, ''))
      const isOutside = /^https?:/.test(link) || link.startsWith('#')
      if (!isOutside && !isThere(path.replace(/\/$/, ''))) dead.push(`${page}: ${link}`)
    }
  }
  assert.deepEqual(dead, [])
})

test('every dependency that the compiled code imports is a declared one', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  // In `init/` stand the programs that `millpond init` writes, which have imports of their own.
  const isOurs = (name: string) => name.endsWith('.js') && !name.startsWith('dist/cli/init/')
  for (const file of files.filter(isOurs)) {
    // Whoever imports this has the peer; nothing else of the package imports it.
    const known = file.startsWith('dist/opentelemetry/') ? { ...dependencies, ...peerDependencies } : dependencies
    const code = readFileSync(join(project, 'node_modules/millpond', file), 'utf8')
    for (const [, name] of code.matchAll(/^import .*? from '([^'.][^']*)'/gm)) {
      assert.ok(name?.startsWith('node:') || Object.hasOwn(known, name ?? ''), `${file} imports ${name}`)
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
    // A store is a folder. The table of schemes and what wraps a store stand beside them.
    const store = loaded.filter((url) => /\\/stores\\/[^/]+\\//.test(url)).length
    const pond = await Millpond.open('memory:')
    await pond.close()
    console.log(JSON.stringify({ store, sqlite: loaded.filter((url) => url.includes('sqlite')) }))
  `)
  assert.deepEqual(JSON.parse(printed), { store: 0, sqlite: [] })
})

test('npx millpond --help and --version', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.match(npm('npx', '--offline', 'millpond', '--help'), /^millpond: [\s\S]*millpond serve/)
  assert.equal(npm('npx', '--offline', 'millpond', '--version'), `${version}\n`)
})

test('the installed program serves, and ends with 0 when it is told to', { timeout: 60_000 }, async () => {
  const program = join(project, 'node_modules/.bin/millpond')
  const running = await startMillpond(['serve', '--store', 'memory:', '--port', '0'], {}, program)
  const response = await fetch(`${running.origin}/openapi.json`)
  const document = JSON.parse(await response.text())
  assert.deepEqual([response.status, document.openapi], [200, '3.1.0'])
  assert.ok(Object.hasOwn(document.paths, '/v1/queues/{queue}/jobs'))
  assert.equal(await running.end('SIGTERM'), 0)
  assert.match(running.lines.at(-1) ?? '', / stopped$/)
})

test('its subpaths resolve, types beside them', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const [path, entry] of Object.entries<{ types?: string; default?: string } | string>(exports)) {
    if (typeof entry === 'string') continue
    assert.ok(files.includes(entry.types?.slice(2) ?? '') && files.includes(entry.default?.slice(2) ?? ''), path)
  }
})
