/** The PostgreSQL store under every isolation level that a database may have by default, and inside callers' transactions of each. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, urlOf, withStore } from '../stores/postgres-fixture.ts'
import { until } from '../support/until.ts'

const skip = missingReason('postgres')
const LEVELS = ['repeatable read', 'serializable'] as const

/** A database of its own whose transactions begin at the level. */
async function withDatabase(level: string, body: (url: URL) => Promise<void>): Promise<void> {
  const name = `mp_${randomBytes(6).toString('hex')}`
  await server(`create database ${name}`)
  await server(`alter database ${name} set default_transaction_isolation = '${level}'`)
  const url = new URL(urlOf('postgres'))
  url.pathname = name
  try {
    await body(url)
  } finally {
    // `end` of a pool may resolve before the server has seen it, and a client that is forced out emits an error.
    const left = `select from pg_stat_activity where datname = '${name}' and backend_type = 'client backend'`
    await until(async () => (await server(left)).length === 0, 'all clients to be gone')
    await server(`drop database ${name} with (force)`)
  }
}

/** Jobs with places far beyond the marks' steps, through many claims at once. @returns ids that came out, as often as they did */
async function flow(stores: readonly Store[], count: number): Promise<string[]> {
  const seen: string[] = []
  let pushing = true
  const pushes = stores.map(async (store) => {
    for (let sent = 0; sent < count; sent += 100)
      await store.operations.push({ jobs: Array.from({ length: 100 }, () => job({ fresh: true })) })
  })
  const claims = [...stores, ...stores].map(async (store) => {
    for (;;) {
      const last = !pushing
      const claimed = await claimAll(store, 200)
      seen.push(...claimed.map(({ id }) => id))
      await store.operations.complete({
        queue: 'emails',
        items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
      })
      if (last && claimed.length === 0) return
    }
  })
  await Promise.all(pushes)
  pushing = false
  await Promise.all(claims)
  return seen
}

describe('a database whose transactions are by default', { skip }, () => {
  for (const level of LEVELS) {
    test(`${level}: many open it at once, no job stays behind, ids and capacities hold`, async () => {
      await withDatabase(level, async (url) => {
        const stores = await Promise.all([1, 2, 3].map(() => open(url, {})))
        try {
          const seen = await flow(stores, 5000)
          assert.equal(seen.length, 15_000)
          assert.equal(new Set(seen).size, 15_000)
          const [known = ''] = seen
          assert.deepEqual(await stores[0]?.operations.push({ jobs: [job({ id: known })] }), [
            { status: 'existing', id: known },
          ])
          await stores[0]?.operations.configure({ queue: 'small', capacity: 5 })
          const pushes = Array.from({ length: 30 }, (_, at) =>
            stores[at % 3]?.operations.push({ jobs: [job({ queue: 'small' })] }),
          )
          const outcomes = (await Promise.all(pushes)).flatMap((each) => each ?? [])
          assert.equal(outcomes.filter(({ status }) => status === 'pushed').length, 5)
        } finally {
          await Promise.all(stores.map((store) => store.close()))
        }
      })
    })

    test(`${level}: with clients of the caller’s, too`, async () => {
      await withDatabase(level, async (url) => {
        const pool = new pg.Pool({ connectionString: url.href, max: 4 })
        const sql = postgres(url.href, { max: 4, onnotice: () => {} })
        const clients: StoreOptions[] = [{ client: pool }, { client: sql }]
        const stores = await Promise.all(clients.map((options) => open(url, options)))
        try {
          assert.equal(new Set(await flow(stores, 3000)).size, 6000)
        } finally {
          await Promise.all(stores.map((store) => store.close()))
          await Promise.all([pool.end(), sql.end()])
        }
      })
    })
  }

  test('serializable: a function that is called there by itself says what it needs', async () => {
    await withStore(async (_, schema) => {
      const client = new pg.Client(urlOf('postgres'))
      await client.connect()
      try {
        await client.query(`set default_transaction_isolation = 'serializable'`)
        for (const call of [`claim('emails', 'w', 1)`, 'sweep(10)']) {
          await assert.rejects(client.query(`select ${schema}.${call}`), { code: 'MP001', message: /READ COMMITTED/ })
        }
      } finally {
        await client.end()
      }
    })
  })
})

describe('a push in a caller’s transaction', { skip }, () => {
  for (const level of LEVELS) {
    test(`at ${level} is found however late it commits`, async () => {
      await withStore(async (store, schema) => {
        await store.operations.configure({ queue: 'emails', keepDone: 3_600_000 })
        const client = new pg.Client(urlOf('postgres'))
        await client.connect()
        try {
          await client.query(`begin isolation level ${level}`)
          await client.query('select 1')
          // Its view is old by now.
          assert.equal((await flow([store], 5000)).length, 5000)
          const late = job({ fresh: true })
          await store.transactions?.push({ tx: client, jobs: [late] })
          assert.equal((await flow([store], 9000)).length, 9000)
          await client.query('commit')
          assert.deepEqual(
            (await claimAll(store)).map(({ id }) => id),
            [late.id],
          )
          // How soon a claim moves the marks depends on what it meets.
          await until(async () => {
            await flow([store], 1000)
            const [row] = await server(`select places[6]::int as mark from ${schema}.lines where line = 0`)
            return Number(row?.mark) > 14_000
          }, 'the marks to go on')
        } finally {
          await client.end()
        }
      })
    })

    test(`at ${level} is refused where it would have to see what others do`, async () => {
      await withStore(async (store) => {
        await store.operations.configure({ queue: 'emails', keepDone: 3_600_000 })
        await store.operations.configure({ queue: 'small', capacity: 1 })
        const client = new pg.Client(urlOf('postgres'))
        await client.connect()
        const refused = (error: unknown) =>
          isMillpondError(error, 'NotSupported') && /READ COMMITTED/.test(error.message)
        try {
          await client.query(`begin isolation level ${level}`)
          await client.query('select 1')
          const known = job()
          await store.operations.push({ jobs: [known] })
          const [claim] = await claimAll(store)
          assert.ok(claim)
          await store.operations.complete({ queue: 'emails', items: [{ ...claim, result: null }] })
          await assert.rejects(async () => store.transactions?.push({ tx: client, jobs: [known] }), refused)
          await assert.rejects(
            async () => store.transactions?.push({ tx: client, jobs: [job({ queue: 'small', fresh: true })] }),
            refused,
          )
          // The transaction goes on. A key that somebody took meanwhile is a serialization failure, not a second job.
          const keyed = job({ key: 'k' })
          await store.operations.push({ jobs: [keyed] })
          await assert.rejects(
            async () => store.transactions?.push({ tx: client, jobs: [job({ key: 'k', fresh: true })] }),
            (error) => isMillpondError(error, 'StoreBusy'),
          )
          await client.query('rollback')
        } finally {
          await client.end()
        }
      })
    })

    test(`at ${level} rings for a worker that fell asleep since it began`, async () => {
      await withStore(async (store, schema) => {
        await store.operations.configure({ queue: 'emails', keepDone: 3_600_000 })
        const client = new pg.Client(urlOf('postgres'))
        await client.connect()
        try {
          await client.query(`begin isolation level ${level}`)
          await client.query('select 1')
          let rung = false
          store.listen(({ kind }) => {
            if (kind === 'work') rung = true
          })
          await until(async () => {
            await claimAll(store)
            return (await server(`select 1 from ${schema}.sleepers`)).length === 1
          }, 'the sleeper')
          rung = false
          await store.transactions?.push({ tx: client, jobs: [job({ fresh: true })] })
          await client.query('commit')
          await until(() => rung, 'the bell')
        } finally {
          await client.end()
        }
      })
    })
  }

  test('at serializable on one queue does not fail others', async () => {
    await withStore(async (store) => {
      await store.operations.configure({ queue: 'emails', keepDone: 3_600_000 })
      const pool = new pg.Pool({ connectionString: urlOf('postgres'), max: 8 })
      try {
        const pushes = Array.from({ length: 200 }, async () => {
          const client = await pool.connect()
          try {
            await client.query('begin isolation level serializable')
            await store.transactions?.push({ tx: client, jobs: [job({ fresh: true })] })
            await client.query('commit')
          } finally {
            client.release()
          }
        })
        await Promise.all(pushes)
        assert.equal((await store.operations.stats({ queue: 'emails' }))[0]?.counts.waiting, 200)
      } finally {
        await pool.end()
      }
    })
  })
})
