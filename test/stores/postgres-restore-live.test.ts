/** `restore` of live jobs alone, which takes its own few statements: what is known already, among what is not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { newJob, recordOf } from '../support/jobs.ts'
import { openEmptied, urlOf } from './postgres-fixture.ts'

test('ids and keys that are known, also within the batch', { skip: missingReason('postgres') }, async () => {
  const { store, dispose } = await openEmptied(urlOf('postgres'))
  const { push, claim, complete, remove, restore, find, stats, settings } = store.operations
  try {
    const [waiting, done, running, removed] = [newJob({ key: 'w' }), newJob(), newJob({ key: 'r' }), newJob()]
    await push({ jobs: [removed] })
    const claims = { queue: 'q', worker: 'w', limit: 1, lease: null }
    await claim(claims)
    await remove({ ids: [removed.id] })
    await push({ jobs: [done, running, waiting] })
    const { jobs } = await claim({ ...claims, limit: 2 })
    await complete({ queue: 'q', items: jobs.slice(0, 1).map(({ id, fence }) => ({ id, fence, result: null })) })

    const twice = recordOf({ key: 'new' })
    const records = [
      recordOf({ priority: 1, group: 'g' }),
      recordOf({ id: waiting.id }),
      recordOf({ id: done.id, key: 'free' }),
      recordOf({ id: running.id }),
      recordOf({ key: 'w' }),
      twice,
      { ...twice, key: 'other' },
      recordOf({ key: 'new' }),
      recordOf({ key: 'free', state: 'scheduled', dueAt: Date.now() + 60_000 }),
      recordOf({ id: removed.id }),
      recordOf({ queue: 'another', key: 'w' }),
    ]
    const [restored, existing] = ['restored', 'existing'] as const
    assert.deepEqual(await restore({ records }), [
      ...[restored, existing, existing, existing, existing, restored, existing, existing],
      ...[restored, restored, restored],
    ])
    const others = [recordOf({ key: 'other' }), recordOf({ key: 'last' })]
    assert.deepEqual(await restore({ records: others }), [restored, restored])
    const [back] = await find({ ids: [removed.id] })
    assert.ok(back && back.fence > 0, 'no fence is given out twice')
    assert.deepEqual(
      (await stats({ queue: 'q' })).map(({ counts }) => counts),
      [{ blocked: 0, scheduled: 1, waiting: 6, running: 1, done: 1, dead: 0, cancelled: 0 }],
    )
    assert.deepEqual(await restore({ records: [] }), [])
    assert.ok(await settings({ queue: 'another' }))
  } finally {
    await dispose()
  }
})
