/** Two releases with the same tables and other functions open one schema: contract/postgres/README.md, "Editions". */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { OpenStore } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf, withStore } from './postgres-fixture.ts'

const TREE = new URL('../../', import.meta.url)
const LATER = 1000

/** The same sources with functions of a later edition, one of which tells so. */
async function laterRelease(t: TestContext): Promise<OpenStore> {
  const tree = mkdtempSync(join(tmpdir(), 'millpond-later-'))
  t.after(() => rmSync(tree, { recursive: true }))
  for (const part of ['src', 'contract', 'package.json']) {
    cpSync(fileURLToPath(new URL(part, TREE)), join(tree, part), { recursive: true })
  }
  symlinkSync(fileURLToPath(new URL('node_modules', TREE)), join(tree, 'node_modules'))
  const shared = join(tree, 'contract/postgres/shared.sql')
  writeFileSync(shared, readFileSync(shared, 'utf8').replace(/^(-- Edition:) \d+$/m, `$1 ${LATER}`))
  const who = `create or replace function millpond.who() returns text language sql as $$ select 'later' $$;`
  writeFileSync(join(tree, 'contract/postgres/who.sql'), who)
  const module: { open: OpenStore } = await import(pathToFileURL(join(tree, 'src/stores/postgres/index.ts')).href)
  return module.open
}

describe('editions of the functions', { skip: missingReason('postgres') }, () => {
  /** Opens the schema, pushes a job, and closes it. */
  const visit = async (opens: OpenStore, schema: string): Promise<void> => {
    const store = await opens(urlOf('postgres'), { schema })
    try {
      await store.operations.push({ jobs: [job()] })
    } finally {
      await store.close()
    }
  }

  test('in a rolling deploy the later functions stay, and processes of both releases go on', async (t) => {
    const later = await laterRelease(t)
    await withStore(async (earlier, schema) => {
      const [own] = await server(`select operations, edition from ${schema}.meta`)
      assert.ok(Number(own?.edition) > 0)
      await visit(later, schema)
      const installed = async () => (await server(`select operations, edition, ${schema}.who() from ${schema}.meta`))[0]
      const found = await installed()
      assert.equal(found?.edition, LATER)
      assert.equal(found?.who, 'later')
      // One of the earlier release starts again; another has been open all along.
      await visit(open, schema)
      await earlier.operations.push({ jobs: [job()] })
      assert.deepEqual(await installed(), found)
      assert.equal((await claimAll(earlier)).length, 3)
      // The way back, by hand.
      await server(`update ${schema}.meta set edition = 0`)
      await visit(open, schema)
      assert.deepEqual((await server(`select operations, edition from ${schema}.meta`))[0], own)
    })
  })

  test('of releases that open a new schema at once, the later one wins', async (t) => {
    const later = await laterRelease(t)
    const schema = newSchema()
    try {
      await Promise.all([open, later, open, later].map((opens) => visit(opens, schema)))
      const [found] =
        await server(`select edition, ${schema}.who(), (select count(*)::int from ${schema}.waiting) as waiting
        from ${schema}.meta`)
      assert.deepEqual({ ...found }, { edition: LATER, who: 'later', waiting: 4 })
    } finally {
      await dropSchema(schema)
    }
  })
})
