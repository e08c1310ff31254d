/** `select millpond.schedule(…)`, as people and migrations call it from psql. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { versionOf } from '../../src/values/schedules/firing.ts'
import { missingReason } from '../servers/shared.ts'
import { server, withStore } from './postgres-fixture.ts'

const only = async ({ operations }: Store) => (await operations.schedules({ limit: 1 }))[0] ?? assert.fail()

describe('schedules from SQL', { skip: missingReason('postgres') }, () => {
  test('are those that code declares: of the same version', async () => {
    await withStore(async (store, schema) => {
      const declared = await server(
        `select ${schema}.schedule('nightly', ' 0 7 * * 1-5 ', 'reports', '{"kind": "ü\\"\\\\"}', tz => 'Europe/Paris',
          "from" => '2026-01-01Z', jitter => 5, key => 'k', timeout => 9000) as outcome`,
      )
      assert.deepEqual(declared, [{ outcome: 'created' }])
      const record = await only(store)
      assert.equal(record.when, '0 7 * * 1-5')
      assert.equal(record.from, Date.UTC(2026, 0, 1))
      assert.equal(record.version, versionOf(record, record.job))
      assert.equal(record.job.data.body, '{"kind": "ü\\"\\\\"}')
      const again = { ...record, again: false }
      assert.deepEqual(await store.operations.declare({ schedules: [again] }), ['same'])
      const changed = await server(
        `select ${schema}.schedule('nightly', 'every 90s', 'reports', '1'::jsonb) as outcome`,
      )
      assert.deepEqual(changed, [{ outcome: 'changed' }])
      const { schedules } = await store.operations.sweep({ limit: 1 })
      assert.equal(schedules?.due[0]?.planned, false)
    })
  })

  test('bad ones are refused', async () => {
    await withStore(async (store, schema) => {
      const bad: [string, RegExp][] = [
        [`'no name', '@daily', 'q', '1'`, /InvalidName/],
        [`'s', '@daily', 'no queue', '1'`, /InvalidName/],
        [`'s', '* * *', 'q', '1'`, /InvalidOption: a schedule is a cron line/],
        [`'s', 'every 0s', 'q', '1'`, /InvalidOption: an interval/],
        [`'s', 'every 0.5s', 'q', '1'`, /InvalidOption: an interval/],
        [`'s', '@daily', 'q', '1', tz => 'Mars/Olympus'`, /InvalidOption: tz/],
        [`'s', '@daily', 'q', '1', "from" => '2027-01-01', until => '2026-01-01'`, /InvalidOption: from/],
        [`'s', '@daily', 'q', '1', missed => 'never'`, /InvalidOption: missed/],
        [`'s', '@daily', 'q', '1', priority => 10`, /InvalidOption: priority/],
        [`'s', '@daily', 'q', '1', key => ''`, /InvalidName/],
        [`'s', '@daily', 'q', null::text`, /InvalidOption: data/],
        [`'s', '@daily', 'q', to_json(repeat('x', 70000))`, /PayloadTooLarge/],
      ]
      for (const [given, error] of bad)
        await assert.rejects(server(`select ${schema}.schedule(${given})`), error, given)
      assert.deepEqual(await store.operations.schedules({ limit: 1 }), [])
    })
  })

  test('those that no job can be made of are refused, by whatever function: a firing would fail with all others of its call', () =>
    withStore(async (store, schema) => {
      const job = {
        queue: 'q',
        priority: 4,
        key: null,
        group: null,
        cost: 1,
        attempts: null,
        timeout: null,
        data: 'j1',
      }
      const good = {
        ...{ name: 's', version: '1', when: '@daily', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
        ...{ paused: false, again: false, job },
      }
      const declare = (item: object) => server(`select ${schema}.declare_schedules($1)`, [JSON.stringify([item])])
      const jobs = [
        { queue: '' },
        { priority: 10 },
        { attempts: 0 },
        { cost: 0 },
        { key: '' },
        { data: 'x' },
        { data: null },
      ]
      const bad = [{ missed: 'never' }, { jitter: -1 }, ...jobs.map((each) => ({ job: { ...job, ...each } }))]
      for (const each of bad) {
        await assert.rejects(declare({ ...good, ...each }), { code: '22023' }, JSON.stringify(each))
      }
      assert.deepEqual(await store.operations.schedules({ limit: 1 }), [])
      await declare(good)
      assert.equal((await only(store)).name, 's')
    }))
})
