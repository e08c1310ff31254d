/** The rules that keep the house a house. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(tsx?|sql|lua|md|json)$/.test(file) && !file.endsWith('package-lock.json'))
/** Which file of `operations/` has which operations, in every store. */
const OPERATIONS: Record<string, string[]> = {
  ...{ bulk: ['bulk'], cancel: ['cancel'], claim: ['claim'], configure: ['configure', 'limitGroup', 'settings'] },
  ...{
    end: ['complete', 'fail', 'release'],
    extend: ['extend'],
    find: ['find', 'outcomes', 'ahead'],
    list: ['list', 'groups'],
  },
  journal: ['journal', 'entries', 'signal'],
  ...{
    push: ['push'],
    relatives: ['relatives'],
    remove: ['remove'],
    requeue: ['requeue'],
    restore: ['restore'],
    stats: ['stats', 'record'],
  },
  ...{ sweep: ['sweep'], update: ['update'], workers: ['heartbeat', 'workers'] },
  schedules: ['declare', 'schedules', 'pauseSchedule', 'removeSchedule', 'fire'],
}
const read = (file: string) => readFileSync(new URL(file, root), 'utf8')

test('no file has 500 lines', () => {
  // The code makes the table of conformance, and most of cli.md.
  const made = ['docs/contributing/conformance.md', 'docs/cli.md']
  const isMade = (file: string) => made.includes(file)
  const long = tracked.filter((file) => !isMade(file) && read(file).split('\n').length > 500)
  assert.deepEqual(long, [])
})

test('no line of code has over 140 characters', () => {
  const code = tracked.filter((file) => /^src\/.*\.tsx?$|^contract\/.*\.(?:sql|lua)$/.test(file))
  const long = code.flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((line, index) => (line.length > 140 ? [`${file}:${index + 1}`] : [])),
  )
  assert.deepEqual(long, [])
})

test('a store is a table of operations and little else', () => {
  const store = read('src/store.ts')
  const membersOf = (name: string) =>
    [
      ...(new RegExp(`export interface ${name} \\{\n(.*?)\n\\}`, 's').exec(store)?.[1] ?? '').matchAll(
        /^ {2}(?:readonly )?(\w+)/gm,
      ),
    ].map(([, member]) => member)
  assert.deepEqual(membersOf('Store').toSorted(), [
    ...[
      'capabilities',
      'clock',
      'close',
      'laneOf',
      'listen',
      'name',
      'operations',
      'replicas',
      'shards',
      'transactions',
    ],
  ])
  assert.deepEqual(membersOf('Operations').toSorted(), Object.values(OPERATIONS).flat().toSorted())
})

const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/from '(\.[^']+)'|import\('(\.[^']+)'\)/g)].map(([, from, dynamic]) =>
    new URL(from ?? dynamic ?? '', `file:///${file}`).pathname.slice(1),
  )
const sourcesUnder = (folder: string): string[] =>
  tracked.filter((file) => file.startsWith(folder) && file.endsWith('.ts'))

/** The folders of `src/`, from the ground up. A file imports from its own folder and from those above it in this list. */
const FLOORS = [
  ['values', 'store.ts'],
  ['batch'],
  ['stores'],
  ['move'],
  ['worker'],
  ['pond'],
  ['testing'],
  ['coalesce'],
  ['cache'],
  ['metrics', 'opentelemetry'],
  ['web'],
  ['dashboard', 'webhook'],
  ['alerts'],
  ['serve'],
  ['cli'],
]
/** The public API, which nothing else imports: it may load these, and neither HTTP nor the command. */
const BEHIND_INDEX = ['values', 'store.ts', 'batch', 'worker', 'pond', 'coalesce']
const floorOf = (file: string): string => file.split('/')[1] ?? ''

test('imports point down', () => {
  const heights = new Map(FLOORS.flatMap((names, height) => names.map((name) => [name, height] as const)))
  const heightOf = (file: string): number => {
    const height = heights.get(floorOf(file))
    assert.ok(height !== undefined, `${file}: add its folder to FLOORS`)
    return height
  }
  const sources = sourcesUnder('src/').filter((file) => file !== 'src/index.ts')
  const upward = sources.flatMap((file) =>
    importsOf(file)
      .filter((imported) => imported === 'src/index.ts' || heightOf(imported) > heightOf(file))
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(upward, [])
  assert.deepEqual(
    importsOf('src/index.ts').filter((imported) => !BEHIND_INDEX.includes(floorOf(imported))),
    [],
  )
})

test('the cache stands on its own: neither the queue nor HTTP is imported', () => {
  const used = new Set(sourcesUnder('src/cache/').flatMap(importsOf).map(floorOf))
  assert.deepEqual([...used].sort(), ['cache', 'coalesce', 'stores', 'values'])
})

test('nothing outside src/stores imports a particular store', () => {
  const outside = sourcesUnder('src/').filter((file) => !file.startsWith('src/stores/'))
  const naming = outside.filter((file) =>
    importsOf(file).some((imported) => /^src\/stores\/(?:memory|sqlite|redis|postgres|rabbitmq)\//.test(imported)),
  )
  assert.deepEqual(naming, [])
})

test('the client of Redis is shared by the Redis store, the cache and the move of BullMQ alone, and knows none of them', () => {
  const isClients = (file: string): boolean => file.startsWith('src/stores/redis-client/')
  const users = sourcesUnder('src/').filter((file) => !isClients(file) && importsOf(file).some(isClients))
  assert.deepEqual(
    [...new Set(users.map((file) => /^src\/(?:cache|move\/sources\/bullmq|stores\/redis)\//.exec(file)?.[0]))].sort(),
    ['src/cache/', 'src/move/sources/bullmq/', 'src/stores/redis/'],
  )
  const used = sourcesUnder('src/stores/redis-client/').flatMap(importsOf)
  const ground = /^src\/(?:values\/|stores\/(?:redis-client\/)?[\w-]+\.ts$)/
  assert.deepEqual(
    used.filter((file) => !ground.test(file)),
    [],
  )
})

test('each operation of the contract has its file of SQL', () => {
  const operations = [...read('contract/operations.md').matchAll(/^### (\w+)$/gm)].map((match) => match[1])
  assert.ok(operations.length >= 12)
  for (const operation of operations) {
    if (operation === 'listen') continue // bells.sql
    assert.ok(tracked.includes(`contract/sqlite/${operation}.sql`), operation)
  }
})

test('the SQL of PostgreSQL is plain ASCII, as a database may be in any encoding', () => {
  const isPlain = (text: string) => !/[^\n -~]/.test(text)
  assert.deepEqual(
    tracked.filter((file) => /^contract\/postgres\/.*\.sql$/.test(file) && !isPlain(read(file))),
    [],
  )
})

test('every store keeps each operation in the same file', () => {
  const lacking = ['bulk', 'cancel', 'find', 'journal', 'list', 'relatives', 'remove', 'requeue', 'schedules', 'update']
  const lacks: Record<string, string[]> = { memory: [], sqlite: [], redis: [], postgres: [], rabbitmq: lacking }
  for (const [store, without] of Object.entries(lacks)) {
    const files = tracked.flatMap(
      (file) => new RegExp(`^src/stores/${store}/operations/(\\w+)\\.ts$`).exec(file)?.[1] ?? [],
    )
    const due = Object.entries(OPERATIONS).filter(([file]) => !without.includes(file))
    assert.deepEqual(files.toSorted(), [...due.map(([file]) => file), 'index'].toSorted(), store)
    for (const [file, operations] of due) {
      const source = read(`src/stores/${store}/operations/${file}.ts`)
      for (const name of operations) {
        if (without.length > 0 && ['limitGroup', 'settings', 'groups', 'workers', 'ahead'].includes(name)) continue
        assert.match(source, new RegExp(`^export (async )?(function|const) ${name}\\b`, 'm'), `${store} ${name}`)
      }
    }
    assert.match(read(`src/stores/${store}/operations/index.ts`), /^export function operationsOf\(/m, store)
    assert.match(read(`src/stores/${store}/index.ts`), /^export const open: OpenStore/m)
  }
  for (const room of ['connection/client', 'connection/thread', 'notifier', 'wire', 'settings', 'errors']) {
    assert.ok(tracked.includes(`src/stores/sqlite/${room}.ts`), room)
  }
})

test('the cache has its rooms: memory in the process, Redis, and loading', () => {
  const inRooms = sourcesUnder('src/cache/').map((file) => file.slice('src/cache/'.length).split('/'))
  const rooms = inRooms.flatMap(([room, ...rest]) => (room !== undefined && rest.length > 0 ? [room] : []))
  assert.deepEqual([...new Set(rooms)].sort(), ['loading', 'memory', 'redis'])
  const users = sourcesUnder('src/cache/').filter((file) =>
    importsOf(file).some((imported) => imported.startsWith('src/stores/redis-client/')),
  )
  const outside = users.filter((file) => !file.startsWith('src/cache/redis/'))
  assert.deepEqual(outside.sort(), ['src/cache/options.ts'])
})

test('every statement of the SQLite store is in the contract', () => {
  const files = tracked.filter((file) =>
    /^src\/stores\/sqlite\/operations\/.*\.ts$|sqlite\/(queues|notifier)\.ts$/.test(file),
  )
  for (const file of files) assert.doesNotMatch(read(file), /\b(from|update|into|delete from) millpond_/, file)
})

test("the README's example is examples/first.ts", () => {
  const blocks = [...read('README.md').matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1])
  assert.ok(blocks.includes(read('examples/first.ts')))
})

test('every example is run by a test', () => {
  const tests = tracked.filter((file) => /^test\/.*\.test\.ts$/.test(file)).map(read)
  // Those of other languages: test/serve/examples.test.ts runs each pair.
  const examples = tracked.flatMap((file) => /^examples\/(.+)\.ts$/.exec(file)?.[1] ?? [])
  const isNamed = (name: string) => tests.some((text) => text.includes(`/${name}.ts'`) || text.includes(`'${name}'`))
  assert.deepEqual(
    examples.filter((name) => !isNamed(name)),
    [],
  )
})

test('documentation links lead somewhere', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    for (const [, target] of read(file).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      assert.doesNotThrow(() => statSync(new URL(target ?? '', new URL(file, root))), `${file} → ${target}`)
    }
  }
})
