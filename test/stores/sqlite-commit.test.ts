/** One commit for many calls, locks held by others, bells across connections, and the thread's end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { bell, connectTo, job, newPath, openAt, program } from './sqlite-fixture.ts'

const claim = { queue: 'emails', worker: 'w', limit: 10, lease: 10_000 }

describe('sqlite: group commit', () => {
  test("one call's error leaves the others of its commit alone", async () => {
    const path = newPath()
    const store = await openAt(path)
    // The table takes whole numbers only; the library's own checks would not let this through.
    const bad = () => job({ id: 'bad', priority: 1.5 })
    const [first, second, third] = await Promise.allSettled([
      store.operations.push({ jobs: [job({ id: 'first' })] }),
      store.operations.push({ jobs: [job({ id: 'beside' }), bad()] }),
      store.operations.push({ jobs: [job({ id: 'third' })] }),
    ])
    assert.deepEqual(first, { status: 'fulfilled', value: [{ status: 'pushed', id: 'first' }] })
    assert.equal(second.status === 'rejected' && second.reason.code, 'StoreFailed')
    assert.deepEqual(third, { status: 'fulfilled', value: [{ status: 'pushed', id: 'third' }] })
    const found = await store.operations.find({ ids: ['first', 'beside', 'bad', 'third'] })
    assert.deepEqual(
      found.map((record) => record?.id),
      ['first', undefined, undefined, 'third'],
    )
    assert.equal((await store.operations.stats({}))[0]?.counts.waiting, 2)
  })

  test('calls of one tick share a commit', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.operations.push({ jobs: [job()] })
    const db = connectTo(path)
    const version = (): unknown => db.prepare('pragma data_version').get()?.data_version
    // data_version changes with what a commit writes as a whole; frames in the log tell commits apart.
    db.prepare('pragma wal_checkpoint(truncate)').get()
    const before = version()
    await Promise.all(Array.from({ length: 100 }, () => store.operations.push({ jobs: [job()] })))
    assert.notEqual(version(), before)
    const { log } = { ...db.prepare('pragma wal_checkpoint').get() }
    assert.ok(Number(log) < 100, `100 pushes wrote ${log} pages: a commit of its own each would be over 300`)
    db.close()
  })

  test('answers keep to their calls in a mixed commit', async () => {
    const store = await openAt(newPath())
    const [pushed, claimed, found, stale, swept] = await Promise.all([
      store.operations.push({ jobs: [job({ id: 'one' })] }),
      store.operations.claim(claim),
      store.operations.find({ ids: ['one'] }),
      store.operations.complete({ queue: 'emails', items: [{ id: 'other', fence: 1, result: null }] }),
      store.operations.sweep({ limit: 10 }),
    ])
    assert.equal(pushed[0]?.status, 'pushed')
    assert.equal(claimed.jobs[0]?.id, 'one')
    assert.equal(found[0]?.state, 'running')
    assert.deepEqual(stale, ['stale'])
    assert.equal(swept.more, false)
  })
})

describe('sqlite: a lock held by another connection', () => {
  test('a write waits off the event loop and goes on when it can', async () => {
    const path = newPath()
    const store = await openAt(path)
    const db = connectTo(path)
    db.exec('begin immediate')
    let settled = false
    const pushed = store.operations.push({ jobs: [job()] }).finally(() => {
      settled = true
    })
    for (let i = 0; i < 1000; i++) await setImmediate()
    assert.equal(settled, false)
    // This very thread lets go of the lock: were it blocked, that would never happen.
    db.exec('rollback')
    assert.equal((await pushed)[0]?.status, 'pushed')
    db.close()
  })

  test('after busyTimeout it is StoreBusy, nothing is stored, and the same call succeeds later', async () => {
    const path = newPath()
    const store = await openAt(path, { busyTimeout: 30 })
    const db = connectTo(path)
    db.exec('begin immediate')
    const one = job()
    const outcomes = await Promise.allSettled([
      store.operations.push({ jobs: [one] }),
      store.operations.push({ jobs: [job()] }),
    ])
    for (const outcome of outcomes) assert.equal(outcome.status === 'rejected' && outcome.reason.code, 'StoreBusy')
    db.exec('rollback')
    assert.deepEqual(await store.operations.find({ ids: [one.id] }), [null])
    assert.equal((await store.operations.push({ jobs: [one] }))[0]?.status, 'pushed')
    db.close()
  })

  test('what only reads, an empty claim and an idle sweep need no lock', async () => {
    const path = newPath()
    const store = await openAt(path, { busyTimeout: 30 })
    await store.operations.push({ jobs: [job({ id: 'later', delay: 60_000 })] })
    await store.operations.configure({ queue: 'paused', paused: true })
    await store.operations.push({ jobs: [job({ queue: 'paused' })] })
    const db = connectTo(path)
    db.exec('begin immediate')
    assert.deepEqual((await store.operations.claim(claim)).jobs, [])
    assert.deepEqual((await store.operations.claim({ ...claim, queue: 'paused' })).jobs, [])
    assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 0)
    assert.equal((await store.operations.find({ ids: ['later'] }))[0]?.state, 'scheduled')
    assert.equal((await store.operations.stats({})).length, 2)
    assert.equal((await store.operations.list({ queue: 'emails', state: 'scheduled', limit: 5 })).jobs.length, 1)
    db.exec('rollback')
    db.close()
  })
})

describe('sqlite: bells across connections', () => {
  test('work: pushed, unpaused, and pushed by plain SQL counts', { timeout: 10_000 }, async () => {
    const path = newPath()
    const [one, other] = await Promise.all([openAt(path), openAt(path)])
    let rung = bell(one, 'work')
    await one.operations.find({ ids: [] })
    await other.operations.push({ jobs: [job()] })
    assert.deepEqual(await rung, { kind: 'work', queue: 'emails' })
    await other.operations.configure({ queue: 'emails', paused: true })
    rung = bell(one, 'work')
    await one.operations.find({ ids: [] })
    await other.operations.configure({ queue: 'emails', paused: false })
    assert.deepEqual(await rung, { kind: 'work', queue: 'emails' })
  })

  test('finished, cancelled, room', { timeout: 10_000 }, async () => {
    const path = newPath()
    const [one, other] = await Promise.all([openAt(path), openAt(path)])
    await other.operations.configure({ queue: 'emails', capacity: 2 })
    await other.operations.push({ jobs: [job({ id: 'a' }), job({ id: 'b' })] })
    const room = bell(one, 'room')
    await one.operations.find({ ids: [] })
    const { jobs } = await other.operations.claim(claim)
    assert.deepEqual(await room, { kind: 'room', queue: 'emails' })
    const finished = bell(one, 'finished')
    await one.operations.find({ ids: [] })
    await other.operations.complete({
      queue: 'emails',
      items: jobs.slice(0, 1).map(({ id, fence }) => ({ id, fence, result: null })),
    })
    assert.deepEqual(await finished, { kind: 'finished', queue: 'emails' })
    const cancelled = bell(one, 'cancelled')
    await one.operations.find({ ids: [] })
    await other.operations.cancel({ ids: ['b'] })
    assert.deepEqual(await cancelled, { kind: 'cancelled', queue: 'emails' })
  })

  test('room: a job that comes and goes in one commit, with a push between that found no room', {
    timeout: 10_000,
  }, async () => {
    const store = await openAt(newPath())
    const settings = bell(store, 'room')
    await store.operations.configure({ queue: 'emails', capacity: 1 })
    await settings
    const room = bell(store, 'room')
    // What is told to whoever begins to listen, too, has to be over.
    const work = bell(store, 'work')
    await store.operations.push({ jobs: [job({ queue: 'other' })] })
    await work
    const [outcomes, { jobs }] = await Promise.all([
      store.operations.push({ jobs: [job(), job()] }),
      store.operations.claim(claim),
    ])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['pushed', 'full'],
    )
    assert.equal(jobs.length, 1)
    assert.deepEqual(await room, { kind: 'room', queue: 'emails' })
  })

  test("work: a caller's transaction, once it commits", { timeout: 10_000 }, async () => {
    const path = newPath()
    const store = await openAt(path)
    const db = connectTo(path)
    const rung = bell(store, 'work')
    await store.operations.find({ ids: [] })
    db.exec('begin immediate')
    await store.transactions?.push({ tx: db, jobs: [job()] })
    db.exec('commit')
    assert.deepEqual(await rung, { kind: 'work', queue: 'emails' })
    db.close()
  })

  test('another process', { timeout: 20_000 }, async () => {
    const path = newPath()
    const store = await openAt(path)
    const rung = bell(store, 'work')
    await store.operations.find({ ids: [] })
    await program(`const store = await open(${JSON.stringify(`sqlite:${path}`)}, {})
      await store.operations.push({ jobs: [job('elsewhere')] })
      await store.close()`)
    assert.deepEqual(await rung, { kind: 'work', queue: 'emails' })
  })
})

describe('sqlite: the end', () => {
  test('close lets calls under way finish, and refuses later ones', async () => {
    const path = newPath()
    const store = await openAt(path)
    const one = job()
    const pushed = store.operations.push({ jobs: [one] })
    const closed = store.close()
    assert.equal((await pushed)[0]?.status, 'pushed')
    await closed
    await store.close()
    await assert.rejects(store.operations.push({ jobs: [job()] }), { code: 'Closed' })
    await assert.rejects(store.operations.requeue({ ids: [] }), { code: 'Closed' })
    assert.throws(() => store.listen(() => {}), { code: 'Closed' })
    assert.equal((await (await openAt(path)).operations.find({ ids: [one.id] }))[0]?.state, 'waiting')
  })

  test('a thread that dies takes its calls with it, by an error', { timeout: 10_000 }, async () => {
    const path = newPath()
    const started = once(process, 'worker')
    const store = await openAt(path)
    const [worker] = await started
    assert.ok(worker instanceof Worker)
    const db = connectTo(path)
    // So that the call is surely under way.
    db.exec('begin immediate')
    const pushed = store.operations.push({ jobs: [job()] })
    const failed = assert.rejects(pushed, { code: 'StoreFailed', message: /ended unexpectedly/ })
    await setImmediate()
    const dead = worker.terminate()
    db.exec('rollback')
    await failed
    await dead
    await assert.rejects(store.operations.find({ ids: ['a'] }), { code: 'StoreFailed' })
    await store.close()
    db.close()
    assert.equal((await (await openAt(path)).operations.push({ jobs: [job()] }))[0]?.status, 'pushed')
  })

  test('an open store keeps no process alive, a call that waits does', async () => {
    const path = newPath()
    await program(`await open(${JSON.stringify(`sqlite:${path}`)}, {})`)
    const printed = await program(`const store = await open(${JSON.stringify(`sqlite:${path}`)}, {})
      store.listen(() => {})
      store.operations.push({ jobs: [job('last')] }).then((outcomes) => console.log(outcomes[0].status))
      process.on('exit', () => console.log('ended'))`)
    assert.equal(printed, 'pushed\nended')
    assert.equal((await (await openAt(path)).operations.find({ ids: ['last'] }))[0]?.state, 'waiting')
  })

  test('kill -9 loses nothing that was acknowledged', async () => {
    const path = newPath()
    const printed = await program(`const store = await open(${JSON.stringify(`sqlite:${path}`)}, {})
      for (let n = 0; n < 200; n++) { await store.operations.push({ jobs: [job('k' + n)] }); console.log(n) }
      store.operations.push({ jobs: [job('k200')] })
      process.kill(process.pid, 'SIGKILL')`).catch((error: { stdout: string }) => error.stdout.trim())
    assert.equal(printed.split('\n').length, 200)
    const store = await openAt(path)
    const found = await store.operations.find({ ids: Array.from({ length: 200 }, (_, n) => `k${n}`) })
    assert.ok(found.every((record) => record?.state === 'waiting'))
  })
})
