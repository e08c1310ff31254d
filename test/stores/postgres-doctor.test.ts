/** What the doctor makes of what PostgreSQL tells of old transactions, slots and bloat: none of them can be had in a short test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cells } from '../../src/stores/postgres/connection/database.ts'
import { examineHistory } from '../../src/stores/postgres/doctor-history.ts'

/** A server that answers so, by a word of the statement. */
const told = (answers: Readonly<Record<string, readonly Cells[]>>) =>
  examineHistory({
    schema: 'millpond',
    ask: async (sql) => Object.entries(answers).find(([word]) => sql.includes(word))?.[1] ?? [],
  })

test('a server that is well', async () => {
  const found = await told({ pg_has_role: [['t']], prepared: [['0']] })
  assert.deepEqual(
    found.map(({ check, level }) => `${check} ${level}`),
    ['transactions ok', 'slots ok', 'publications ok', 'bloat ok'],
  )
  const [transactions] = await told({ pg_has_role: [['f']] })
  assert.equal(transactions?.level, 'problem')
  assert.match(transactions.text, /sees its own transactions alone/)
  assert.match(transactions.action ?? '', /pg_read_all_stats/)
})

test('transactions that pin VACUUM, slots that keep log, dead rows, no autovacuum', async () => {
  const found = await told({
    pg_stat_activity: [['123', 'app', 'reports', 'idle in transaction', '7200']],
    pg_prepared_xacts: [['2']],
    pg_replication_slots: [
      ['gone', 'f', 't', String(3 * 2 ** 30)],
      ['small', 'f', 'f', '1000'],
      ['slow', 't', 'f', String(2 * 2 ** 30)],
      ['well', 't', 'f', '1000'],
    ],
    pg_publication_tables: [['all_tables', '30']],
    pg_stat_user_tables: [['waiting', '900000', '10', String(2 ** 30), 't']],
    track_counts: [['autovacuum'], ['track_counts']],
    reloptions: [['moves']],
  })
  assert.deepEqual(
    found.map(({ check, level }) => `${check} ${level}`),
    [
      ...['transactions warning', 'transactions warning', 'slots problem', 'slots warning', 'slots warning'],
      ...['publications note', 'bloat warning', 'bloat problem', 'bloat problem', 'bloat problem'],
    ],
  )
  assert.match(found[0]?.text ?? '', /^process 123 of app \(reports\) has a transaction open for 120 min/)
  assert.match(found[0]?.action ?? '', /pg_terminate_backend\(123\)/)
  assert.match(found.at(-1)?.text ?? '', /^autovacuum is off for millpond.moves/)
  assert.match(found[2]?.text ?? '', /keeps 3072 MiB of write-ahead log and old rows/)
  for (const { action } of found) assert.notEqual(action ?? '', '')
})

test('a check that may not be made hides no other', async () => {
  const found = await examineHistory({
    schema: 'millpond',
    ask: (sql) => (sql.includes('slots') ? Promise.reject(new Error('permission denied')) : Promise.resolve([])),
  })
  assert.deepEqual(
    found.filter(({ text }) => /^could not be looked at: /.test(text)).map(({ level }) => level),
    ['problem'],
  )
  assert.match(found.find(({ check }) => check === 'slots')?.text ?? '', /permission denied/)
})
