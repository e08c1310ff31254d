/**
 * Every code block of the README and the documentation, and every example, is checked and, unless its page says why not, run: in a project
 * in which the package is installed, beside the clients and frameworks that the pages name.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'
import { Millpond } from '../../src/index.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { type Block, codeBlocks, LANGUAGES, type Language, programOf } from './code-blocks.ts'
import { faultsOf, layPackage, PACKING, ROOT } from './published.ts'

const run = promisify(execFile)
const blocks = codeBlocks()
const of = (language: Language) => blocks.filter((block) => block.language === language)
const folder = sharedFolder()
const project = join(folder, 'project')
const BESIDE = [
  ...['@hono/node-server', '@opentelemetry/api', '@opentelemetry/sdk-trace-base', '@opentelemetry/sdk-metrics'],
  ...['@opentelemetry/context-async-hooks', 'better-sqlite3', 'drizzle-orm', 'express', 'fastify', 'hono', 'ioredis'],
  ...['kysely', 'pg', 'amqplib', 'postgres', 'zod', '@types'],
]
const fileOf = ({ at }: Block) => join(project, `${at.replace(/\W/g, '-')}.mts`)

before(
  async () => {
    await layPackage(project, BESIDE, 'commonjs')
    for (const block of of('ts')) writeFileSync(fileOf(block), `${programOf(block)}export {}\n`)
    mkdirSync(join(project, 'examples'))
    for (const file of readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.ts'))) {
      copyFileSync(join(ROOT, 'examples', file), join(project, 'examples', file.replace(/ts$/, 'mts')))
    }
  },
  { timeout: PACKING },
)

test('each block says in which language it is', () => {
  const known: readonly string[] = LANGUAGES
  assert.deepEqual(
    blocks.filter(({ language }) => !known.includes(language)).map(({ at }) => at),
    [],
  )
})

test('the TypeScript and the examples have no fault, and the declarations of the package none either', async () => {
  assert.deepEqual(await faultsOf(project), [])
})

/** What the program needs that is not here. */
function lacks(program: string): string | false {
  if (program.includes('redis://localhost')) return missingReason('redis')
  return program.includes('MILLPOND_TEST_POSTGRES') && missingReason('postgres')
}

describe('the TypeScript runs', { concurrency: 2 }, () => {
  for (const block of of('ts').filter(({ noRun }) => noRun === undefined)) {
    test(block.at, { skip: lacks(programOf(block)), timeout: 30_000 }, async () => {
      const own = mkdtempSync(join(folder, 'ts-'))
      // A page's worker may go on; its program is over when its last line is.
      const code = `${readFileSync(fileOf(block), 'utf8')}process.exit(0)\n`
      const file = fileOf(block).replace(/mts$/, 'run.mts')
      writeFileSync(file, code.replaceAll('redis://localhost', serverUrl('redis') ?? ''))
      await run(process.execPath, [file], { cwd: own })
    })
  }
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  assert.ok(typeof address === 'object' && address !== null)
  return address.port
}

describe('the shell commands run', () => {
  for (const block of [...of('sh'), ...of('console')]) {
    test(block.at, { skip: block.noRun !== undefined && block.noRun, timeout: 30_000 }, async () => {
      const own = mkdtempSync(join(folder, 'sh-'))
      const port = await freePort()
      const env = {
        ...process.env,
        NODE: process.execPath,
        PACKAGE: join(project, 'node_modules/millpond'),
        PORT: `${port}`,
        ORIGIN: `http://127.0.0.1:${port}`,
      }
      await run('sh', ['-e', '-c', programOf(block)], { cwd: own, env })
    })
  }

  test('those that do not are shell all the same', async () => {
    for (const { code, noRun } of of('sh')) if (noRun !== undefined) await run('sh', ['-n', '-c', code])
  })
})

test('the JSON is JSON', () => {
  for (const { code } of of('json')) JSON.parse(code)
})

const sqlOf = (page: string) => of('sql').filter((block) => block.page === page)

test('the SQL of docs/sqlite.md runs on a store', async () => {
  const file = join(folder, 'sql.db')
  const pond = await Millpond.open(`sqlite:${file}`)
  await pond.queue('emails').push({ to: 'ada@example.org' })
  const db = new DatabaseSync(file)
  for (const { code } of sqlOf('docs/sqlite.md')) db.exec(code)
  db.close()
  await pond.close()
})

test('the SQL of docs/postgres.md runs on a store', { skip: missingReason('postgres') }, async () => {
  const name = `docs_${process.pid}`
  const admin = new pg.Client(serverUrl('postgres'))
  await admin.connect()
  await admin.query(`create database ${name}`)
  const roles = ['web', 'jobs', 'support']
  for (const role of roles) await admin.query(`create role ${role}`)
  try {
    const url = new URL(serverUrl('postgres') ?? '')
    url.pathname = name
    const pond = await Millpond.open(url)
    const client = new pg.Client(url.href)
    await client.connect()
    for (const { code } of sqlOf('docs/postgres.md')) await client.query(code)
    await client.query(`drop owned by ${roles.join(', ')}`)
    await client.end()
    assert.equal((await pond.queue('emails').jobs('waiting')).length, 1)
    await pond.close()
  } finally {
    await admin.query(`drop database if exists ${name} with (force)`)
    for (const role of roles) await admin.query(`drop role ${role}`)
    await admin.end()
  }
})
