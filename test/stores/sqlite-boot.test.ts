/** After a power cut the last claims may be undone: their fences are not given out once more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const claim = async (store: Store) =>
  (await store.claim({ queue: 'emails', worker: 'w', limit: 10, lease: 60_000 })).jobs

/** As if the machine had been started anew since the file was last open. */
function startAnew(path: string): void {
  const db = connectTo(path)
  assert.equal(db.prepare(`update millpond_meta set value = 'another' where key = 'boot'`).run().changes, 1)
  db.close()
}

test('who opens the file first after the machine was started anew gives out fences above all before, the others the same', async () => {
  const path = newPath()
  const before = await openAt(path)
  await before.push([job({ id: 'old' })])
  const [lost] = await claim(before)
  assert.equal(lost?.fence, 1)
  await before.release('emails', [{ id: 'old', fence: 1 }])
  await before.close()

  const same = await openAt(path)
  assert.equal((await claim(same))[0]?.fence, 2)
  await same.release('emails', [{ id: 'old', fence: 2 }])
  await same.close()

  startAnew(path)
  const [store, beside] = await Promise.all([openAt(path), openAt(path)])
  const [old] = await claim(store)
  assert.equal(old?.fence, 100_001)
  assert.deepEqual(await store.extend('emails', 1000, [{ id: 'old', fence: 2, progress: null }]), ['stale'])
  // Pushed and claimed in one commit, which has a statement of its own; data that is no JSON is claimed by yet another.
  const [, [fresh]] = await Promise.all([beside.push([job({ id: 'fresh' })]), claim(beside)])
  assert.equal(fresh?.fence, 100_001)
  await beside.push([job({ id: 'bytes', data: { encoding: 'bytes', body: new Uint8Array(3) } })])
  assert.equal((await claim(beside))[0]?.fence, 100_001)
  await Promise.all([store.release('emails', [{ id: 'old', fence: 100_001 }]), beside.close()])
  assert.equal((await claim(store))[0]?.fence, 100_002)
  await store.close()

  startAnew(path)
  const last = await openAt(path)
  await last.release('emails', [{ id: 'old', fence: 100_002 }])
  assert.equal((await claim(last))[0]?.fence, 200_001)
  await last.close()
})
