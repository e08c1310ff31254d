/** Another program replaces, renames, links or removes the file or its log while it is open: loud, and nothing more is acknowledged. */
import assert from 'node:assert/strict'
import { existsSync, linkSync, readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { test } from 'node:test'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const unavailable = (message: RegExp) => ({ code: 'StoreUnavailable', message })

/** In a file beside it, as `vacuum into` or `.backup` make one. */
function backupOf(path: string): string {
  const db = connectTo(path)
  db.prepare('vacuum into ?').run(`${path}.backup`)
  db.close()
  return `${path}.backup`
}

const HARMS: Record<string, (path: string) => void> = {
  'its log is removed': (path) => unlinkSync(`${path}-wal`),
  'its log is renamed': (path) => renameSync(`${path}-wal`, `${path}-old`),
  'its log is replaced': (path) => {
    unlinkSync(`${path}-wal`)
    writeFileSync(`${path}-wal`, '')
  },
  'it is removed': (path) => unlinkSync(path),
  'it is renamed': (path) => renameSync(path, `${path}.old`),
  'a backup is put in its place': (path) => renameSync(backupOf(path), path),
  'it gets a second name': (path) => linkSync(path, `${path}.link`),
}

for (const sync of ['full', 'normal'] as const) {
  for (const [what, harm] of Object.entries(HARMS)) {
    test(`sync=${sync}: ${what}: pushes, claims and reads are refused`, {
      skip: process.platform === 'win32',
    }, async () => {
      const path = newPath()
      const store = await openAt(path, { sync })
      await store.operations.push({ jobs: [job()] })
      harm(path)
      const refusal = unavailable(/app|replaced, renamed or removed|hard links/)
      await assert.rejects(store.operations.push({ jobs: [job()] }), refusal)
      await assert.rejects(store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 1000 }), refusal)
      await assert.rejects(store.operations.stats({}), refusal)
      await store.close()
    })
  }
}

test('a file that is renamed and comes back stays refused: what was written meanwhile may be lost', async () => {
  const path = newPath()
  const store = await openAt(path)
  renameSync(path, `${path}.old`)
  const refusal = unavailable(/renamed/)
  await assert.rejects(store.operations.push({ jobs: [job()] }), refusal)
  renameSync(`${path}.old`, path)
  await assert.rejects(store.operations.push({ jobs: [job()] }), refusal)
  await store.close()
})

test('a file that is removed between the begin and the commit: the commit is not acknowledged', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'one' })] })
  const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })
  const transaction = await store.transactions?.begin('q')
  await transaction?.query('select 1', [])
  unlinkSync(path)
  const done = transaction?.complete({
    queue: 'emails',
    items: [{ id: 'one', fence: jobs[0]?.fence ?? 0, result: null }],
  })
  await assert.rejects(done ?? assert.fail(), unavailable(/removed/))
  await store.close()
})

test('a file with a second name is not opened; a name that a crash has left from making it is removed', async () => {
  const path = newPath()
  await (await openAt(path)).close()
  linkSync(path, `${path}.link`)
  await assert.rejects(openAt(path), unavailable(/hard links/))
  await assert.rejects(openAt(`${path}.link`), unavailable(/hard links/))
  unlinkSync(`${path}.link`)
  linkSync(path, `${path}.${crypto.randomUUID()}`)
  const store = await openAt(path)
  await store.operations.push({ jobs: [job()] })
  const names = readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.`))
  assert.deepEqual(names, [])
  assert.ok(existsSync(path))
})
