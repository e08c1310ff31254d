/** Many processes open one file at the same moment: fresh, or made by an older version, or by a newer one. */

import assert from 'node:assert/strict'
import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { scratch } from '../support/cleaning.ts'
import { type Child, faultsOf, look, type Message, start } from './harness.ts'
import type { OpenerConfig } from './roles/opener.ts'

const FILES = 3
const TREE = new URL('../../', import.meta.url)

const schemaOf = (path: string) => look(path, 'select type, name, sql from sqlite_schema order by type, name')
/** Raised by one with every change of the schema, so it tells how often it was changed. */
const schemaVersion = (path: string) => look(path, 'pragma schema_version')[0]?.schema_version
const versionOf = (path: string) => look(path, `select value from millpond_meta where key = 'version'`)[0]?.value

function openers(t: TestContext, count: number, paths: string[], tree: URL = TREE): Child[] {
  const config: OpenerConfig = { urls: paths.map((path) => `sqlite:${path}`) }
  return Array.from({ length: count }, () => start(t, 'opener', config, { tree }))
}

/** All of them open their next file now. */
async function openAll(crew: Child[]): Promise<Message[]> {
  const before = crew.map((child) => child.said('opened').length)
  for (const child of crew) child.send({ kind: 'open' })
  return Promise.all(crew.map((child, i) => child.hear('opened', (before[i] ?? 0) + 1)))
}

async function closeAll(crew: Child[]): Promise<void> {
  for (const child of crew) child.send({ kind: 'close' })
  for (const child of crew) assert.deepEqual(await child.exited, { code: 0, signal: null }, child.words)
}

/** This very source, with one migration more: what the next version will be to this one. */
function nextVersion(folder: string): URL {
  const tree = join(folder, 'next')
  for (const part of ['src', 'contract', 'test/faults', 'package.json']) {
    cpSync(fileURLToPath(new URL(part, TREE)), join(tree, part), { recursive: true })
  }
  symlinkSync(fileURLToPath(new URL('node_modules', TREE)), join(tree, 'node_modules'))
  const sql = `create table millpond_of_next_version (n integer) strict; insert into millpond_of_next_version values (1);`
  writeFileSync(join(tree, 'contract/sqlite/migrations/900_next.sql'), sql)
  return pathToFileURL(`${tree}/`)
}

test('eight processes open the same fresh file at the same moment, and its tables are made once', async (t) => {
  const folder = scratch(t)
  const alone = join(folder, 'alone.db')
  const pond = await Millpond.open(`sqlite:${alone}`)
  await pond.close()

  const paths = Array.from({ length: FILES }, (_, i) => join(folder, `${i}.db`))
  const crew = openers(t, 8, paths)
  await Promise.all(crew.map((child) => child.hear('ready')))
  for (const path of paths) {
    const opened = await openAll(crew)
    assert.deepEqual(
      opened.filter(({ code }) => code !== undefined),
      [],
    )
    const jobs = look(path, 'select id from millpond_jobs').map(({ id }) => id)
    assert.deepEqual(jobs.toSorted(), opened.map(({ id }) => String(id)).toSorted())
  }
  await closeAll(crew)
  for (const path of paths) {
    assert.deepEqual(schemaOf(path), schemaOf(alone))
    assert.equal(schemaVersion(path), schemaVersion(alone))
    assert.equal(versionOf(path), versionOf(alone))
    assert.deepEqual(faultsOf(path), [])
  }
})

test('eight processes of the next version migrate a file in which an older process works', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'app.db')
  const [old] = openers(t, 1, [path])
  assert.ok(old)
  const crew = openers(t, 8, [path], nextVersion(folder))
  await Promise.all([...crew, old].map((child) => child.hear('ready')))
  await openAll([old])
  const current = versionOf(path)

  const opened = await openAll(crew)
  assert.deepEqual(
    opened.filter(({ code }) => code !== undefined),
    [],
  )
  assert.deepEqual(look(path, 'select n from millpond_of_next_version').length, 1)
  assert.equal(versionOf(path), 900)
  assert.notEqual(current, 900)
  // It had the file open before, so it goes on; a migration never takes away what an older version uses.
  await old.ask('push')
  assert.equal(look(path, 'select count(*) as n from millpond_jobs')[0]?.n, 10)
  await closeAll([...crew, old])
  assert.deepEqual(faultsOf(path), [])

  // Whoever opens it anew is told.
  await assert.rejects(Millpond.open(`sqlite:${path}`), (error) => isMillpondError(error, 'StoreVersion'))
})

test('old and next version open a file of the old one at the same moment', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'app.db')
  const pond = await Millpond.open(`sqlite:${path}`)
  await pond.close()
  const old = openers(t, 4, [path])
  const next = openers(t, 4, [path], nextVersion(folder))
  await Promise.all([...old, ...next].map((child) => child.hear('ready')))
  const opened = await openAll([...old, ...next])
  const [ofOld, ofNext] = [opened.slice(0, 4), opened.slice(4)]
  assert.deepEqual(
    ofNext.filter(({ code }) => code !== undefined),
    [],
  )
  for (const { code } of ofOld) assert.ok(code === undefined || code === 'StoreVersion', String(code))
  const ids = opened.filter(({ id }) => id !== undefined).map(({ id }) => String(id))
  const jobs = look(path, 'select id from millpond_jobs').map(({ id }) => id)
  assert.deepEqual(jobs.toSorted(), ids.toSorted())
  assert.deepEqual(look(path, 'select n from millpond_of_next_version').length, 1)
  await closeAll([...old, ...next])
})

test('a file of a newer version is refused, untouched, and the message says what to do', async (t) => {
  const path = join(scratch(t), 'app.db')
  const pond = await Millpond.open(`sqlite:${path}`)
  await pond.queue<number>('jobs').push(1)
  await pond.close()
  const db = new DatabaseSync(path)
  db.exec(`update millpond_meta set value = 901 where key = 'version'`)
  db.close()
  const before = schemaVersion(path)
  await assert.rejects(Millpond.open(`sqlite:${path}`), (error) => {
    assert.ok(isMillpondError(error, 'StoreVersion'))
    assert.match(error.message, /901.*upgrade/)
    assert.equal(error.retryable, false)
    return true
  })
  assert.equal(versionOf(path), 901)
  assert.equal(schemaVersion(path), before)
})
