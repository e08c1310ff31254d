/**
 * A worker is stopped (SIGSTOP) past its lease while it runs a job and has others buffered. Another does all of them;
 * what the first one still says when it goes on (SIGCONT) is refused, and it works on as if nothing had been.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { occupy, QUEUE, scene } from './gates.ts'
import { countsOf, liveIn, look } from './harness.ts'

const idsOf = (messages: { [field: string]: unknown }[]): string[] => messages.map(({ id }) => String(id)).sort()

for (const transaction of [false, true]) {
  for (const first of ['lease', 'completion'] as const) {
    const mode = transaction ? 'transaction: true' : 'plain'
    test(`${mode}: a worker stopped past its lease is refused, ${first === 'lease' ? 'and its handler told' : 'though its handler is ready at once'}`, async (t) => {
      const place = await scene(t)
      const { path, pond } = place
      const stopped = place.worker(transaction, 'before')
      await stopped.hear('ready')
      const { held, ids } = await occupy(place, stopped)
      stopped.kill('SIGSTOP')

      const second = place.worker(transaction, 'never')
      const { worker } = await second.hear('ready')
      await until(() => liveIn(path, QUEUE) === 0, 'the second worker has done all')
      await until(() => second.said('completed').length === ids.length, 'it says so')
      assert.deepEqual(idsOf(second.said('lost')), ids.toSorted())
      assert.deepEqual(idsOf(second.said('completed')), ids.toSorted())
      const records = () => look(path, 'select * from millpond_jobs where worker = ? order by seq', String(worker))
      const before = records()
      assert.deepEqual(
        before.map(({ id, state, fence, attempt }) => ({ id, state, fence, attempt })),
        ids.map((id) => ({ id, state: 'done', fence: 2, attempt: 2 })),
      )

      if (first === 'completion') stopped.send({ kind: 'open' })
      stopped.kill('SIGCONT')
      await stopped.hear('stale')
      if (first === 'lease') {
        assert.deepEqual(await stopped.hear('aborted'), { kind: 'aborted', id: held, code: 'StaleAttempt' })
        stopped.send({ kind: 'open' })
      }
      second.send({ kind: 'close' })
      await second.exited

      // It goes on as before, with its only slot and none of what it had buffered.
      const jobs = pond.queue<object>(QUEUE)
      const more = await jobs.pushMany(Array.from({ length: 5 }, () => ({})))
      await stopped.hear('completed', 1 + more.length)
      assert.deepEqual(idsOf(stopped.said('completed').slice(1)), more.map(({ id }) => id).toSorted())
      assert.deepEqual(idsOf(stopped.said('stale')), [held])
      assert.equal(stopped.said('started').length, 2 + more.length, 'no buffered job was started')
      assert.deepEqual(await stopped.ask('load'), { kind: 'load', running: 0, buffered: 0, slots: 1 })
      assert.deepEqual(records(), before)
      if (transaction) {
        const effects = look(path, 'select fence from effects where id = ?', held)
        assert.deepEqual(
          effects.map(({ fence }) => fence),
          [2],
        )
        const [all] = look(path, 'select count(*) as n, count(distinct id) as ids from effects')
        assert.deepEqual({ ...all }, { n: 1 + ids.length + more.length, ids: 1 + ids.length + more.length })
      }
      const { kept, real } = countsOf(path, QUEUE)
      assert.deepEqual(kept, real)
      assert.equal(real.done, 1 + ids.length + more.length)
    })
  }
}

for (const transaction of [false, true]) {
  const mode = transaction ? 'transaction: true' : 'plain'
  test(`${mode}: a worker stopped past its lease is refused while another still runs the job`, async (t) => {
    const place = await scene(t)
    const { path } = place
    const stopped = place.worker(transaction, 'before')
    await stopped.hear('ready')
    const { held, ids } = await occupy(place, stopped)
    stopped.kill('SIGSTOP')
    const second = place.worker(transaction, 'before')
    const { worker } = await second.hear('ready')
    assert.deepEqual(await second.hear('held'), { kind: 'held', id: held, fence: 2 })

    stopped.send({ kind: 'open' })
    stopped.kill('SIGCONT')
    assert.equal((await stopped.hear('stale')).id, held)
    const job = () => {
      const [row = {}] = look(path, 'select state, worker, fence, attempt from millpond_jobs where id = ?', held)
      return { ...row }
    }
    assert.deepEqual(job(), { state: 'running', worker, fence: 2, attempt: 2 })
    if (transaction) assert.deepEqual(look(path, 'select 1 from effects where id = ?', held), [])

    second.send({ kind: 'open' })
    await until(() => liveIn(path, QUEUE) === 0, 'all is done')
    assert.deepEqual(job(), { state: 'done', worker, fence: 2, attempt: 2 })
    if (transaction) {
      const [all] = look(path, 'select count(*) as n, count(distinct id) as ids from effects')
      assert.deepEqual({ ...all }, { n: 1 + ids.length, ids: 1 + ids.length })
    }
    const { kept, real } = countsOf(path, QUEUE)
    assert.deepEqual(kept, real)
  })
}

test('a worker stopped with its transaction open holds the others up, but nothing is lost or done twice', async (t) => {
  const place = await scene(t)
  const { path, pond } = place
  const stopped = place.worker(true, 'after')
  await stopped.hear('ready')
  const { held, ids } = await occupy(place, stopped)
  stopped.kill('SIGSTOP')

  const second = place.worker(true, 'never')
  const { code } = await second.hear('trouble')
  assert.equal(code, 'StoreBusy')
  // Past the lease of the stopped one, and still nobody can take its jobs.
  await second.hear('trouble', 3)
  assert.deepEqual(second.said('started'), [])

  stopped.send({ kind: 'open' })
  stopped.kill('SIGCONT')
  await until(() => liveIn(path, QUEUE) === 0, 'all is done')
  await until(async () => (await stopped.ask('load')).running === 0, 'no transaction is open')
  const effects = look(path, 'select id, count(*) as n from effects group by id')
  assert.deepEqual(
    effects.filter(({ n }) => n !== 1),
    [],
  )
  assert.equal(effects.length, 1 + ids.length)
  assert.equal((await pond.job(held))?.state, 'done')
  const { kept, real } = countsOf(path, QUEUE)
  assert.deepEqual(kept, real)
  assert.equal(real.done, 1 + ids.length)
})
