/**
 * The file is damaged: StoreCorrupt, from opening or from what meets the damage, with a message that says what to do. The
 * process lives on, and nobody deletes or mends the file behind the owner's back.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { faultsOf, look, seeded, settles, start } from './harness.ts'
import type { SurvivorConfig } from './roles/survivor.ts'

/** Pages beside the roots of the tables. */
const PAGES = depth(2, 40)
const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const QUEUE = 'jobs'
const PAGE = 4096

const isCorrupt = (error: unknown): boolean => {
  assert.ok(isMillpondError(error, 'StoreCorrupt'), String(error))
  assert.match(error.message, /app\.db is damaged or not an SQLite database: copy it, then restore a backup/)
  assert.equal(error.retryable, false)
  return true
}

/** A sound file with many jobs, small and large, of which every third is done. */
async function filled(t: TestContext): Promise<string> {
  const path = join(scratch(t), 'app.db')
  const pond = await Millpond.open(`sqlite:${path}?sync=normal`)
  const jobs = pond.queue<string>(QUEUE)
  const data = Array.from({ length: 1500 }, (_, i) => `old ${i}${'x'.repeat(i % 10 === 0 ? 9000 : i % 100)}`)
  await jobs.pushMany(data.slice(0, 500))
  const worker = jobs.work(() => {})
  while ((await jobs.stats()).counts.done < 500);
  await worker.close()
  await jobs.pushMany(data.slice(500))
  await pond.close()
  assert.deepEqual(faultsOf(path), [])
  assert.ok(!statSync(`${path}-wal`, { throwIfNoEntry: false }), 'all of it is in the file itself')
  return path
}

function overwrite(path: string, page: number, content: Uint8Array): void {
  const file = openSync(path, 'r+')
  writeSync(file, content, 0, content.length, (page - 1) * PAGE)
  closeSync(file)
}

/** The page where the table or index begins. */
const rootOf = (path: string, name: string) =>
  Number(look(path, 'select rootpage from sqlite_schema where name = ?', name)[0]?.rootpage)

const bytesOf = (random: () => number, length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256))

for (const [what, length] of [
  ['garbage', 100_000],
  ['a text', 0],
] as const) {
  test(`${what} instead of a database is StoreCorrupt, and stays as it is`, async (t) => {
    const path = join(scratch(t), 'app.db')
    const content = length > 0 ? bytesOf(seeded(SEED), length) : new TextEncoder().encode('dear diary,\n'.repeat(1000))
    writeFileSync(path, content)
    await assert.rejects(settles('open', Millpond.open(`sqlite:${path}`)), isCorrupt)
    assert.deepEqual(new Uint8Array(readFileSync(path)), content)
  })
}

for (const share of [0.9, 0.5, 0.1]) {
  test(`a file cut to ${share * 100} % is StoreCorrupt, and stays as it is`, async (t) => {
    const path = await filled(t)
    truncateSync(path, Math.floor((statSync(path).size * share) / PAGE) * PAGE)
    const cut = readFileSync(path)
    await assert.rejects(settles('open', Millpond.open(`sqlite:${path}`)), isCorrupt)
    assert.ok(readFileSync(path).equals(cut))
  })
}

test('a page overwritten where jobs are claimed from: claims and pushes are StoreCorrupt, a worker goes on trying', async (t) => {
  const path = await filled(t)
  const pages = statSync(path).size / PAGE
  const garbage = bytesOf(seeded(SEED), PAGE)
  const page = rootOf(path, 'millpond_waiting')
  overwrite(path, page, garbage)
  const pond = await Millpond.open(`sqlite:${path}`)
  after(t, () => pond.close({ timeout: 100 }))
  const jobs = pond.queue<string>(QUEUE)
  await assert.rejects(settles('push', jobs.push('new')), isCorrupt)
  await assert.rejects(settles('list', jobs.jobs('waiting')), isCorrupt)
  const met = Promise.withResolvers<void>()
  let troubles = 0
  pond.on('error', (error) => {
    if (isCorrupt(error) && ++troubles === 3) met.resolve()
  })
  const worker = jobs.work(() => assert.fail('nothing can be claimed'))
  await settles('the worker tells of it, again and again', met.promise)
  await settles('close', worker.close())
  // What is not damaged can be read, as long as it goes.
  assert.equal((await jobs.jobs('done', { limit: 1000 })).length, 500)
  await settles('close', pond.close())
  const size = statSync(path).size
  assert.ok(
    readFileSync(path)
      .subarray((page - 1) * PAGE, page * PAGE)
      .equals(garbage),
    'the damage is still there',
  )
  assert.ok(size >= pages * PAGE, 'and so is all the rest')
})

test('whatever page is damaged, a service neither crashes nor hangs, and says StoreCorrupt if anything', async (t) => {
  t.diagnostic(`MILLPOND_FAULT_SEED=${SEED}`)
  const random = seeded(SEED)
  const sound = await filled(t)
  const pages = statSync(sound).size / PAGE
  const tables = ['millpond_jobs', 'millpond_queues', 'millpond_meta', 'millpond_running', 'millpond_finished']
  const anywhere = Array.from({ length: PAGES }, () => 2 + Math.floor(random() * (pages - 1)))
  const damages = [...tables.map((name) => rootOf(sound, name)), ...anywhere].map((page) => ({
    page,
    content: random() < 0.5 ? bytesOf(random, PAGE) : new Uint8Array(PAGE),
  }))
  const codes = new Map<string, number>()
  const strange: string[] = []
  let wrong = 0

  async function survive({ page, content }: { page: number; content: Uint8Array }): Promise<void> {
    const path = join(scratch(t), 'app.db')
    copyFileSync(sound, path)
    overwrite(path, page, content)
    const config: SurvivorConfig = { url: `sqlite:${path}`, queue: QUEUE }
    const survivor = start(t, 'survivor', config)
    const { refusals } = await survivor.hear('done')
    const where = `page ${page} of ${pages}, ${content[0] === 0 ? 'zeros' : 'garbage'}`
    assert.deepEqual(await survivor.exited, { code: 0, signal: null }, `${where}: ${survivor.words}`)
    assert.ok(Array.isArray(refusals))
    for (const [code, message] of refusals) {
      codes.set(code, (codes.get(code) ?? 0) + 1)
      // A damaged payload is found by its encoding, or not at all: SQLite has no check sums.
      if (code !== 'StoreCorrupt' && code !== 'PayloadNotDecodable') strange.push(`${where}: ${code}: ${message}`)
    }
    wrong += Number(survivor.said('wrong')[0]?.wrong ?? 0)
    assert.ok(statSync(path).size >= pages * PAGE, `${where}: the file was cut`)
  }

  const count = damages.length
  const next = async () => {
    for (let damage = damages.shift(); damage !== undefined; damage = damages.shift()) await survive(damage)
  }
  await Promise.all([next(), next(), next()])
  t.diagnostic(`of ${count} damaged files: ${JSON.stringify(Object.fromEntries(codes))}`)
  t.diagnostic(`payloads that were damaged and still decodable: ${wrong}`)
  assert.deepEqual(strange, [])
  assert.ok((codes.get('StoreCorrupt') ?? 0) >= tables.length)
})
