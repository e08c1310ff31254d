/** What `npm pack` yields is installed in an empty project and used there, as a user would: compiled, in plain JavaScript. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { before, test } from 'node:test'
import { startMillpond } from '../cli/fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { layPackage, npm, PACKING, published, ROOT } from './published.ts'

/** Most bytes of the packed file: 900 kB, and 60 for steps. */
const LARGEST = 960_000
const project = sharedFolder()
let files: readonly string[] = []
let size = 0

before(
  async () => {
    await layPackage(project)
    ;({ files, size } = await published())
  },
  { timeout: PACKING },
)

const installed = (file: string): string => join(project, 'node_modules/millpond', file)
const run = (code: string) => {
  writeFileSync(join(project, 'main.js'), code)
  return execFileSync(process.execPath, ['main.js'], { cwd: project, encoding: 'utf8', timeout: 30_000 })
}

test(`it has at most ${LARGEST / 1000} kB`, () => {
  assert.ok(size <= LARGEST, `${size} bytes`)
})

test('it holds the library, its documentation and the examples, and nothing of the contract, the lab, the tests or the decisions', () => {
  assert.ok(files.includes('dist/index.js') && files.includes('dist/index.d.ts'))
  assert.ok(files.includes('dist/stores/sqlite/connection/thread-code.js') && files.includes('docs/llms.txt'))
  const allowed =
    /^(dist|examples|monitoring)\/|^docs\/[\w-]+\.md$|^docs\/llms\.txt$|^(package\.json|[A-Z]+\.md|LICENSE)$/
  assert.deepEqual(
    files.filter((file) => !allowed.test(file)),
    [],
  )
  assert.deepEqual(
    files.filter((file) => file.startsWith('dist/') && !/\.(js|d\.ts)$/.test(file)),
    [],
  )
})

test('SQL and Lua are in it once', () => {
  const modules = files.filter((file) => file.endsWith('.js'))
  assert.equal(modules.filter((file) => /(sql|lua)-files\.js$/.test(file)).length, 4)
  // There they are packed; a second copy would be in plain text.
  const code = modules.map((file) => readFileSync(installed(file), 'utf8')).join('\n')
  for (const store of ['sqlite', 'postgres', 'redis', 'cache']) {
    const folder = join(ROOT, 'contract', store)
    const texts = readdirSync(folder).filter((file) => /\.(sql|lua)$/.test(file))
    assert.ok(texts.length > 0)
    for (const file of texts) {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n')
      const longest = lines.reduce((one, other) => (other.length > one.length ? other : one))
      assert.ok(!code.includes(longest), `${store}/${file}: ${longest}`)
    }
  }
})

test('the links of its pages lead to what it holds, or to the web', () => {
  const isThere = (path: string) => files.some((file) => file === path || file.startsWith(`${path}/`))
  const dead: string[] = []
  for (const page of files.filter((file) => /\.(md|txt)$/.test(file))) {
    // Pictures are for the repository's pages.
    for (const [, link = ''] of readFileSync(installed(page), 'utf8').matchAll(/(?<!!\[[^\]]*)\]\(([^)\s]+)\)/g)) {
      const path = posix.join(posix.dirname(page), link.replace(/#.*/, ''))
      const isOutside = /^https?:/.test(link) || link.startsWith('#')
      if (!isOutside && !isThere(path.replace(/\/$/, ''))) dead.push(`${page}: ${link}`)
    }
  }
  assert.deepEqual(dead, [])
})

test('every dependency that the compiled code imports is a declared one', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  // In `init/` stand the programs that `millpond init` writes, which have imports of their own.
  const isOurs = (name: string) => name.endsWith('.js') && !name.startsWith('dist/cli/init/')
  for (const file of files.filter(isOurs)) {
    // Whoever imports this has the peer; nothing else of the package imports it.
    const known = file.startsWith('dist/opentelemetry/') ? { ...dependencies, ...peerDependencies } : dependencies
    const code = readFileSync(installed(file), 'utf8')
    for (const [, name] of code.matchAll(/^import .*? from '([^'.][^']*)'/gm)) {
      assert.ok(name?.startsWith('node:') || Object.hasOwn(known, name ?? ''), `${file} imports ${name}`)
    }
  }
})

test('the first example runs in an empty project', () => {
  const example = readFileSync(join(ROOT, 'examples/first.ts'), 'utf8').replaceAll('<{ to: string }>', '')
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

test('npx millpond --help and --version', async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const npx = (...args: string[]) => npm(project, 'exec', '--offline', '--', 'millpond', ...args)
  assert.match(await npx('--help'), /^millpond: [\s\S]*millpond serve/)
  assert.equal(await npx('--version'), `${version}\n`)
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
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [path, entry] of Object.entries<{ types?: string; default?: string } | string>(exports)) {
    if (typeof entry === 'string') continue
    assert.ok(files.includes(entry.types?.slice(2) ?? '') && files.includes(entry.default?.slice(2) ?? ''), path)
  }
})
