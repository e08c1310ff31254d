/** What waits for the disk and what doesn't, in the thread's own order; and a disk that fails only then. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { connect } from '../../src/stores/sqlite/connection/file.ts'
import { GroupCommit } from '../../src/stores/sqlite/connection/group-commit.ts'
import type { Answer, Request } from '../../src/stores/sqlite/connection/requests.ts'
import { settingsOf } from '../../src/stores/sqlite/settings.ts'
import { job, newPath } from './sqlite-fixture.ts'

/** Runs the requests in one commit and returns what happened, in order. */
function happened(requests: Request[], sync = (): void => {}): string[] {
  const settings = settingsOf(`sqlite:${newPath()}`, {})
  const opened = connect(settings)
  const { db } = opened
  const events: string[] = []
  const told = ({ seq, ...answer }: Answer): string => `${seq}${'error' in answer ? ` ${answer.error.code}` : ''}`
  const synced = () => {
    events.push('sync')
    sync()
  }
  const commits = new GroupCommit(opened, settings, synced, {
    answer: (answers) => events.push(...answers.map(told)),
    committed: () => events.push('committed'),
  })
  for (const request of requests) commits.add(request)
  commits.run()
  commits.finish()
  db.close()
  return events
}

const push = (seq: number): Request => ({ seq, op: 'push', input: { jobs: [job()] }, now: null })
const claim = (seq: number): Request => ({
  seq,
  op: 'claim',
  input: { queue: 'emails', worker: 'w', limit: 10, lease: 10_000 },
  now: null,
})

/** As the log has them: of the frames after its header, the last of each commit tells how large the database is then. */
function commitsIn(log: Buffer): number {
  const [header, frame] = [32, 24 + log.readUInt32BE(8)]
  let commits = 0
  for (let at = header; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) commits++
  return commits
}

describe('sqlite: the disk', () => {
  test('pushes of one tick share a commit', async () => {
    const path = newPath()
    await using pond = await Millpond.open(`sqlite:${path}`)
    const queue = pond.queue('emails')
    await queue.push({})
    const before = commitsIn(readFileSync(`${path}-wal`))
    await Promise.all(Array.from({ length: 50 }, (_, n) => queue.push({ n })))
    assert.equal(commitsIn(readFileSync(`${path}-wal`)) - before, 1)
  })

  test('a claim is answered when its commit is made, a push of the same commit when that is on the disk', () => {
    assert.deepEqual(happened([push(1), claim(2)]), ['committed', '2', 'sync', '1'])
    assert.deepEqual(happened([claim(1), push(2), push(3), claim(4)]), ['committed', '1', '4', 'sync', '2', '3'])
  })

  test('a release is answered when its commit is made, with a park when that is on the disk, as entries are', () => {
    const hold = { id: 'none', fence: 1 }
    const park = { until: null, signals: 0, after: [], entries: [], reason: '{}' }
    const release = (seq: number, parked: boolean): Request => ({
      ...{ seq, op: 'release', now: null },
      input: { queue: 'emails', items: [{ ...hold, ...(parked && { park }) }] },
    })
    const journal: Request = {
      seq: 3,
      op: 'journal',
      input: { queue: 'emails', items: [{ ...hold, entries: [] }] },
      now: null,
    }
    assert.deepEqual(happened([release(1, true), release(2, false), journal]), ['2', 'sync', '1', '3'])
  })

  test('pushes alone share one wait for the disk, and are answered after it', () => {
    assert.deepEqual(happened([push(1), push(2), push(3)]), ['committed', 'sync', '1', '2', '3'])
  })

  test('a claim alone, or what only reads, waits for no disk', () => {
    assert.deepEqual(happened([claim(1), { seq: 2, op: 'stats', input: {}, now: null }]), ['1', '2'])
  })

  test('if a commit fails, each request is run by itself in the order in which they came', () => {
    // The table takes whole numbers only.
    const bad = (seq: number): Request => ({
      seq,
      op: 'push',
      input: { jobs: [job({ priority: 1.5 })] },
      now: null,
    })
    assert.deepEqual(happened([push(1), bad(2), push(3)]), [
      ...['committed', 'sync', 'committed', 'sync'],
      ...['1', '2 StoreFailed', '3'],
    ])
    assert.deepEqual(happened([bad(1)]), ['1 StoreFailed'])
  })

  test('where the disk fails after the commit, who needed it is told so, and nobody else', () => {
    const broken = (): never => {
      throw new Error('EIO: i/o error, fdatasync')
    }
    assert.deepEqual(happened([push(1), claim(2)], broken), ['committed', '2', 'sync', '1 StoreFailed'])
  })

  test('a completion in a handler’s transaction waits for the disk, its statements do not', () => {
    const query = (seq: number, text: string): Request => ({
      seq,
      op: 'query',
      transaction: 1,
      input: { text, params: [] },
      now: null,
    })
    const completed: Request = {
      seq: 4,
      op: 'complete',
      transaction: 1,
      input: { queue: 'emails', ids: ['a'], fences: [1], results: null, logs: null },
      now: null,
    }
    const pushed: Request = { seq: 1, op: 'push', input: { jobs: [job({ id: 'a' })] }, now: null }
    assert.deepEqual(happened([pushed, claim(2), query(3, 'create table t (n)'), completed]), [
      ...['committed', '2', 'sync', '1'],
      ...['3', 'committed', 'sync', '4'],
    ])
  })
})
