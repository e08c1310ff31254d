/** The PostgreSQL store's bells: none is missed for want of a glance at the right moment, and looks become rare when nothing happens. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { Caller } from '../../src/stores/postgres/caller.ts'
import type { Database } from '../../src/stores/postgres/database.ts'
import { Doorbell } from '../../src/stores/postgres/doorbell.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, until, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

describe('a push that is under way', { skip }, () => {
  test('when a worker falls asleep is looked for again until it has ended', async () => {
    await withStore(async (store, schema) => {
      const pusher = new pg.Client({ connectionString: urlOf('postgres') })
      await pusher.connect()
      try {
        await store.push([job()])
        await claimAll(store)
        let up = false
        let claims = 0
        let found = 0
        let claiming: Promise<void> = Promise.resolve()
        store.listen(({ kind }) => {
          up = true
          if (kind !== 'work') return
          claiming = claiming.then(async () => {
            found += (await claimAll(store)).length
            claims++
          })
        })
        await until('LISTEN', () => up)
        await claiming
        await server(`delete from ${schema}.sleepers`)
        await pusher.query('begin')
        await pusher.query(`select ${schema}.push('emails', '1')`)
        // It saw nobody asleep, so it will ring for nobody.
        claims = 0
        await claimAll(store)
        await until('a third look', () => claims >= 3)
        await pusher.query('commit')
        await until('the job', () => found === 1)
      } finally {
        await pusher.end()
      }
    })
  })
})

describe('a list of jobs', { skip }, () => {
  test('is stored in one call, whatever of it is known already', async () => {
    await withStore(async (store, schema) => {
      const known = job()
      await store.push([known])
      // What would have to be asked a second time could fail after a part was stored.
      await server(`drop function ${schema}.push_jobs`)
      const fresh = job()
      const twice = job()
      assert.deepEqual(await store.push([fresh, known, twice, twice]), [
        { status: 'pushed', id: fresh.id },
        { status: 'existing', id: known.id },
        { status: 'pushed', id: twice.id },
        { status: 'existing', id: twice.id },
      ])
      assert.equal((await store.stats({}))[0]?.counts.waiting, 3)
    })
  })

  test('that all are alike meets a full queue job by job', async () => {
    await withStore(async (store) => {
      await store.configure({ queue: 'emails', capacity: 2 })
      const jobs = [job(), job(), job()]
      const outcomes = await store.push(jobs)
      assert.deepEqual(
        outcomes,
        jobs.map(({ id }, at) => ({ status: at < 2 ? 'pushed' : 'full', id })),
      )
    })
  })
})

test('looks become rarer when nothing happens, and frequent again when something does', async () => {
  const looks: number[] = []
  let ready = 0
  const never = () => Promise.reject(new Error('not of this test'))
  const database: Database = {
    async run() {
      looks.push(performance.now())
      return [{ answer: { queue: 'q', capacity: null, paused: false, ready, room: 0, finished: 0, stopped: 0 } }]
    },
    begin: never,
    listen: never,
    pooled: never,
    end: never,
  }
  const POLL = 20
  const doorbell = new Doorbell(new Caller(database, 'none', 15_000, undefined), POLL)
  doorbell.listen(() => {})
  const gap = () => (looks.at(-1) ?? 0) - (looks.at(-2) ?? 0)
  const rare = () => gap() > POLL * 4
  const frequent = () => gap() > 0 && gap() < POLL * 2
  const alive = setInterval(() => {}, 1000)
  try {
    await until('rare looks', rare)
    doorbell.stir()
    await until('frequent looks, since something is done here', frequent)
    await until('rare looks again', rare)
    ready++
    await until('frequent looks, since something was done elsewhere', frequent)
  } finally {
    doorbell.close()
    clearInterval(alive)
  }
})
