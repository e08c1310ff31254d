/** A database that compares texts as people of a country do: where the contract goes by bytes, so does the store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { job, newSchema, openPostgres, server, urlOf } from './postgres-fixture.ts'

const NAMES = ['B', 'Z', '_', 'a', 'b', 'é']

test('pages of groups follow the bytes of their names', { skip: missingReason('postgres') }, async (t) => {
  const [{ version } = { version: 0 }] = await server(
    `select current_setting('server_version_num')::integer as version`,
  )
  if (Number(version) < 150_000) return t.skip('no database has a collation of ICU before PostgreSQL 15')
  const database = newSchema()
  await server(`create database ${database} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'
    locale_provider icu icu_locale 'en-US'`)
  try {
    const url = new URL(urlOf('postgres'))
    url.pathname = database
    const { store } = await openPostgres(url.href)
    try {
      await store.operations.configure({ queue: 'emails', grouped: true })
      await store.operations.push({ jobs: NAMES.toReversed().map((group) => job({ group })) })
      const groups = async (given: { limit: number; after?: string; group?: string }) =>
        (await store.operations.groups({ queue: 'emails', ...given })).map(({ group }) => group)
      assert.deepEqual(await groups({ limit: 4 }), NAMES.slice(0, 4))
      assert.deepEqual(await groups({ limit: 4, after: 'a' }), NAMES.slice(4))
      assert.deepEqual(await groups({ limit: 4, after: 'Z', group: 'a' }), ['a'])
    } finally {
      await store.close()
    }
  } finally {
    await server(`drop database ${database} with (force)`)
  }
})
