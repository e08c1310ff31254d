/** Which shard has a queue, and which stores an address names. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { shardsIn } from '../../src/stores/shard-urls.ts'
import { shardOf } from '../../src/stores/shards/route.ts'

interface Vectors {
  cases: { count: number; shards: Record<string, number> }[]
}
const { cases }: Vectors = JSON.parse(
  readFileSync(new URL('../../contract/vectors/shards.json', import.meta.url), 'utf8'),
)

describe('the shard of a queue', () => {
  for (const { count, shards } of cases) {
    test(`of ${count}`, () => {
      for (const [queue, shard] of Object.entries(shards)) assert.equal(shardOf(queue, count), shard, queue)
    })
  }

  test('one more shard takes queues, and moves no other', () => {
    const queues = Array.from({ length: 2_000 }, (_, n) => `queue-${n}`)
    const moved = queues.filter((queue) => shardOf(queue, 4) !== shardOf(queue, 5))
    assert.deepEqual(new Set(moved.map((queue) => shardOf(queue, 5))), new Set([4]))
    assert.ok(moved.length > 300 && moved.length < 500, `${moved.length} of 2,000 moved, a fifth was due`)
  })
})

describe('the stores of an address', () => {
  const urlsOf = (given: unknown, options = {}) => shardsIn(given, options).urls

  test('are one, or several with commas between', () => {
    assert.deepEqual(urlsOf('sqlite:a.db'), ['sqlite:a.db'])
    assert.deepEqual(urlsOf('sqlite:a.db,sqlite:b,c.db'), ['sqlite:a.db', 'sqlite:b,c.db'])
    assert.deepEqual(urlsOf(['redis://a', new URL('redis://b/1')]), ['redis://a', 'redis://b/1'])
    assert.deepEqual(urlsOf('postgres://a:1,b:2/x?schema=s,postgres://c/y'), [
      'postgres://a:1,b:2/x?schema=s',
      'postgres://c/y',
    ])
  })

  test('the hosts of one URL stay together, also one that is called redis', () => {
    assert.deepEqual(urlsOf('redis://redis:7000,redis:7001'), ['redis://redis:7000,redis:7001'])
    assert.deepEqual(urlsOf('memory:?spill=redis://a,redis://b'), ['memory:?spill=redis://a,redis://b'])
  })

  test('shards of a Redis have prefixes of their own', () => {
    assert.deepEqual(urlsOf('redis://h:1/2?shards=2&wait=1'), [
      'redis://h:1/2?wait=1&prefix=millpond.0',
      'redis://h:1/2?wait=1&prefix=millpond.1',
    ])
    const { urls, options } = shardsIn('redis://h?prefix=app', { shards: 2, prefix: 'mine', timeout: 500 })
    assert.deepEqual(urls, ['redis://h?prefix=mine.0', 'redis://h?prefix=mine.1'])
    assert.deepEqual(options, { timeout: 500 })
  })

  test('are of one kind, of stores that can be shards', () => {
    const invalid = { code: 'InvalidOption' }
    assert.throws(() => urlsOf(['redis://a', 'sqlite:b.db']), invalid)
    assert.throws(() => urlsOf(['memory:', 'memory:']), invalid)
    assert.throws(() => urlsOf([]), invalid)
    assert.throws(() => urlsOf('redis://a?shards=0'), invalid)
    assert.throws(() => urlsOf(['redis://a?shards=2', 'redis://b']), invalid)
  })
})
