/** Where jobs of the Redis store lie: another language must put them in the same places. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hash, indexOf, Partition } from '../../src/stores/redis/partition.ts'
import { vectors } from './vectors.ts'

interface Routing {
  hash: { about: string; text: string; hash: number }[]
  jobs: { about: string; id: string; key: string | null; group: string | null; partitions: number; partition: number }[]
  keys: { about: string; prefix: string; queue: string; partition: number; tag: string; jobs: string; '@due': string }[]
}
const routing = vectors<Routing>('routing')

for (const { about, text, hash: expected } of routing.hash) {
  test(`the hash of ${about}`, () => assert.equal(hash(text), expected))
}

for (const { about, partitions, partition, ...job } of routing.jobs) {
  test(`the partition of a job: ${about}`, () => assert.equal(indexOf(partitions, job), partition))
}

for (const { about, prefix, queue, partition, tag, jobs, '@due': due } of routing.keys) {
  test(`the keys of a partition: ${about}`, () => {
    const place = new Partition(prefix, queue, partition)
    assert.deepEqual([place.tag, place.key('jobs'), place.key('@due')], [tag, jobs, due])
  })
}
