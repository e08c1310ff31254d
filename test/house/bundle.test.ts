/** The published package in one file of esbuild's: it runs on every store, beside nothing but the stores' clients. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type BuildOptions, build } from 'esbuild'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { removePrefix } from '../stores/redis-fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { layInstalled, layPackage, PACKING } from './published.ts'

const execute = promisify(execFile)
const CLIENTS = ['ioredis', 'pg']
const folder = sharedFolder()
const project = join(folder, 'project')

before(
  async () => {
    await layPackage(project, CLIENTS)
    copyFileSync(fileURLToPath(new URL('bundle/app.js', import.meta.url)), join(project, 'app.js'))
  },
  { timeout: PACKING },
)

/** One file in a folder of its own. @returns its path */
async function bundled(name: string, entry: string, options: BuildOptions): Promise<string> {
  const outfile = join(folder, name, options.format === 'cjs' ? 'app.cjs' : 'app.mjs')
  await build({
    absWorkingDir: project,
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    target: 'node22',
    logLevel: 'silent',
    outfile,
    ...options,
  })
  return outfile
}

const run = async (file: string, args: readonly string[] = []): Promise<string> => {
  const options = { cwd: join(file, '..'), timeout: 60_000, killSignal: 'SIGKILL' } as const
  return (await execute(process.execPath, [file, ...args], options)).stdout
}

interface Kind {
  options: BuildOptions
  /** The package by which each client is installed beside the bundle; none: the clients are in it. */
  beside?: Readonly<Record<string, string>>
}

const KINDS: Readonly<Record<string, Kind>> = {
  'ES module': { options: { format: 'esm', external: CLIENTS }, beside: { ioredis: 'ioredis', pg: 'pg' } },
  'ES module, oldest clients': {
    options: { format: 'esm', external: CLIENTS },
    beside: { ioredis: 'ioredis-oldest', pg: 'pg-oldest' },
  },
  'CommonJS, minified': {
    options: { format: 'cjs', external: CLIENTS, minify: true },
    beside: { ioredis: 'ioredis', pg: 'pg' },
  },
  'CommonJS, clients and all': { options: { format: 'cjs' } },
}

describe('one file', { skip: missingReason('redis') || missingReason('postgres') }, () => {
  for (const [index, [kind, { options, beside = {} }]] of Object.entries(KINDS).entries()) {
    test(`${kind}: every store works, and the process ends by itself`, async () => {
      const name = `kind-${index}`
      const prefix = `${basename(folder)}-${index}`
      const schema = newSchema()
      const urls = [
        'memory:',
        `sqlite:${join(folder, name, 'jobs.db')}`,
        `${serverUrl('redis')}?prefix=${prefix}`,
        `${serverUrl('postgres')}?schema=${schema}`,
      ]
      try {
        const file = await bundled(name, 'app.js', options)
        for (const [client, installed] of Object.entries(beside)) layInstalled(join(file, '..'), installed, client)
        const { version } = JSON.parse(readFileSync(join(project, 'node_modules/millpond/package.json'), 'utf8'))
        const handler = join(folder, name, 'handler.mjs')
        writeFileSync(handler, 'export default ({ data }) => data * 2n')
        assert.deepEqual((await run(file, [handler, ...urls])).split('\n'), [
          'memory it is done',
          'sqlite it is done',
          'sqlite 1',
          'redis it is done',
          'postgres it is done',
          'isolated 40n',
          'the module of the handler, no-handler, cannot be loaded: Cannot find module it',
          'cache loaded',
          `serve ${version}`,
          'function function function',
          '',
        ])
      } finally {
        await removePrefix(serverUrl('redis') ?? '', prefix)
        await dropSchema(schema)
      }
    })
  }
})

describe('a client that is not there', () => {
  const opens = `import { Millpond } from 'millpond'
    for (const url of ['redis://127.0.0.1:1', 'postgres://127.0.0.1:1/x']) {
      await Millpond.open(url).catch((error) => console.log(error.message))
    }`

  test('it is told which package is missing', async () => {
    writeFileSync(join(project, 'opens.js'), opens)
    const printed = await run(await bundled('missing', 'opens.js', { format: 'esm', external: CLIENTS }))
    assert.equal(
      printed,
      'the Redis store needs the package ioredis: npm install ioredis\n' +
        'the PostgreSQL store needs the package pg: npm install pg\n',
    )
  })

  test('bundling goes on without it, and the bundle tells the same', async () => {
    const without = join(folder, 'without')
    mkdirSync(join(without, 'node_modules'), { recursive: true })
    writeFileSync(join(without, 'opens.js'), opens)
    for (const name of ['millpond', 'msgpackr', 'croner', 'cronstrue']) {
      // Copies, as what is linked finds what is installed where it lies.
      const installed = join('node_modules', name)
      cpSync(join(project, installed), join(without, installed), { recursive: true, dereference: true })
    }
    const printed = await run(await bundled('without-bundle', 'opens.js', { absWorkingDir: without, format: 'esm' }))
    assert.match(printed, /npm install ioredis\n.*npm install pg\n$/)
  })

  test('one that is in the bundle and cannot be loaded is not called missing', async () => {
    writeFileSync(join(project, 'opens.js'), opens)
    // esbuild cannot load CommonJS packages that need modules of Node into an ES module.
    const printed = await run(await bundled('broken', 'opens.js', { format: 'esm' }))
    assert.match(printed, /ioredis of the Redis store cannot be loaded: Dynamic require .* leave ioredis out of it/)
    assert.match(printed, /pg of the PostgreSQL store cannot be loaded: Dynamic require .* leave pg out of it/)
    assert.doesNotMatch(printed, /npm install/)
  })
})

test('coalesce or batch alone bring no store, no client and no MessagePack into a bundle', async () => {
  for (const name of ['coalesce', 'batch']) {
    const file = `${name}.js`
    writeFileSync(join(project, file), `import { ${name} } from 'millpond'\nconsole.log(typeof ${name})`)
    const { metafile } = await build({
      absWorkingDir: project,
      entryPoints: [file],
      bundle: true,
      platform: 'node',
      format: 'esm',
      metafile: true,
      outfile: join(folder, name, file),
    })
    const [output] = Object.values(metafile.outputs)
    const inside = Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [path] : [],
    )
    assert.ok(inside.some((path) => new RegExp(`/dist/${name}(/index)?\\.js$`).test(path)))
    assert.deepEqual(
      inside.filter((path) => /\/stores|ioredis|\bpg\b|msgpackr|worker|millpond\.js/.test(path)),
      [],
    )
    assert.ok((output?.bytes ?? Number.POSITIVE_INFINITY) < 64 * 1024, `${output?.bytes} bytes`)
    assert.equal(await run(join(folder, name, file)), 'function\n')
  }
})

test('nothing that is published reads files beside it, or asks where it lies', () => {
  const dist = join(project, 'node_modules/millpond/dist')
  const files = readdirSync(dist, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.js'))
  assert.ok(files.length > 100)
  // A message shows it as an example.
  const example = "new URL('./report.ts', import.meta.url)"
  const codeOf = (file: string) => readFileSync(join(dist, file), 'utf8').replaceAll(example, '')
  const reading = files.filter((file) => codeOf(file).includes('import.meta'))
  assert.deepEqual(reading, [])
})
