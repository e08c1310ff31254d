/** What is in Redis when all is over: nothing of any job. */
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { openStore } from '../../src/stores/open.ts'
import { contentOf, keysOf } from '../stores/redis-fixture.ts'

/** Longer than jobs, keys, groups and workers are kept. */
const LATER = 2 * 3_600_000

/**
 * What stays of a pond whose jobs and schedules are all gone: of the pond, and of each queue. None of it grows with jobs;
 * the names of removed schedules stay for a day.
 */
const STAYS_OF_POND = ['claimed', 'floor', 'queues', 'removedSchedules', 'version']
const STAYS_OF_QUEUE = ['histograms', 'limits', 'queue']

/** Keys are `{PREFIX}:NAME` and `{PREFIX}:QUEUE:NAME`. */
function mayStay(key: string, prefix: string): boolean {
  const [name = '', queue] = key.slice(`{${prefix}}:`.length).split(':').reverse()
  return (queue === undefined ? STAYS_OF_POND : STAYS_OF_QUEUE).includes(name)
}

/** Sweeps as processes do for two hours, and looks for what is left. @param ids of all jobs that ever were */
export async function assertLittleLeft(url: string, ids: readonly string[]): Promise<void> {
  let ahead = 0
  const store = await openStore(url, { clock: () => Date.now() + ahead })
  const client = await masterOf(url)
  try {
    for (const { name } of await store.operations.schedules({ limit: 100 })) {
      await store.operations.removeSchedule({ name })
    }
    while (ahead < LATER) {
      ahead += LATER / 12
      while ((await store.operations.sweep({ limit: 1000 })).more);
    }
    const stats = await store.operations.stats({})
    const stored = stats.reduce((sum, { counts }) => sum + Object.values(counts).reduce((a, b) => a + b), 0)
    assert.equal(stored, 0, 'jobs are left')
    const prefix = new URLSearchParams(url.split('?')[1]).get('prefix') ?? 'millpond'
    const keys = await keysOf(client, prefix)
    assert.deepEqual(
      keys.filter((key) => !mayStay(key, prefix)),
      [],
      'keys are left',
    )
    const bytes = ids.map((id) => Buffer.from(id.replaceAll('-', ''), 'hex'))
    for (const key of keys) {
      const content = await contentOf(client, key)
      const found = bytes.filter((id, at) => content.includes(id) || content.includes(ids[at] ?? ''))
      assert.equal(found.length, 0, `${key} still knows ${found.length} jobs`)
    }
  } finally {
    client.disconnect()
    await store.close()
  }
}

/** A connection to where the keys are. */
async function masterOf(url: string): Promise<Redis> {
  const sentinels = /^redis\+sentinel:\/\/([^/]+)\/(\w+)/.exec(url)
  if (sentinels === null) return new Redis(url.replace(/\?.*/, ''))
  const [, hosts = '', name = ''] = sentinels
  const nodes = hosts.split(',').map((each) => ({ host: each.split(':')[0] ?? '', port: Number(each.split(':')[1]) }))
  return new Redis({ sentinels: nodes, name })
}
