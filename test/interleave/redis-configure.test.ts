/**
 * Changes of a queue's settings on Redis, in every order of their calls to the partitions: whoever came last, all partitions keep the same, and
 * share the limits that `settings` tells.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { Calls } from '../../src/stores/redis/connection/calls.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { seeded } from '../faults/harness.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { connect, freshPrefix, keysOf, removePrefix } from '../stores/redis-fixture.ts'
import { depth } from '../support/depth.ts'
import { inAllOrders, type Path } from './orders.ts'
import { Gates } from './redis-gates.ts'

const SEED = Number(process.env.MILLPOND_INTERLEAVE_SEED ?? randomInt(2 ** 31))
const MOST_ORDERS = depth(20, 100)
const PARTITIONS = 3

/** What a partition keeps nothing for. */
const UNSET: Readonly<Record<string, string>> = {
  paused: '0',
  attempts: `${DEFAULTS.queue.attempts}`,
  keepDead: `${DEFAULTS.queue.keepDead}`,
}

type Change = (store: Store, queue: string) => Promise<unknown>

const CHANGES: Record<string, readonly [Change, Change]> = {
  'two of code': [
    ({ operations }, queue) => operations.configure({ queue, running: 3, groupRunning: 1, paused: true }),
    ({ operations }, queue) => operations.configure({ queue, running: 9, capacity: 12, paused: false }),
  ],
  'code, and an operator': [
    ({ operations }, queue) => operations.configure({ queue, running: 3, attempts: 2 }),
    ({ operations }, queue) => operations.configure({ queue, by: 'operator', running: 6, keepDead: 1000 }),
  ],
  'an operator who sets, and one who clears': [
    ({ operations }, queue) => operations.configure({ queue, by: 'operator', running: 6, capacity: 30 }),
    ({ operations }, queue) => operations.configure({ queue, by: 'operator', clear: ['running', 'capacity'] }),
  ],
  'limits of the jobs without a group': [
    ({ operations }, queue) =>
      operations.limitGroup({ queue, group: '', limits: { running: 3, rate: null, weight: 1 } }),
    ({ operations }, queue) =>
      operations.limitGroup({ queue, group: '', limits: { running: 6, rate: null, weight: 2 } }),
  ],
}

describe('settings of several partitions, in every order: redis', { skip: missingReason('redis') }, () => {
  const gates = new Gates(new Set(['configure', 'limit-group']))
  const prefix = freshPrefix()
  const stores: Store[] = []
  let client: ReturnType<typeof connect>
  let count = 0
  before(async () => {
    gates.install(Calls)
    client = connect(serverUrl('redis') ?? '')
    const url = `${serverUrl('redis')}?prefix=${prefix}&partitions=${PARTITIONS}`
    for (let i = 0; i < 2; i++) stores.push(await openStore(url, {}))
  })
  after(async () => {
    gates.remove(Calls)
    client.disconnect()
    await Promise.all(stores.map((store) => store.close()))
    await removePrefix(serverUrl('redis') ?? '', prefix)
  })

  for (const [about, changes] of Object.entries(CHANGES)) {
    test(about, async (t) => {
      t.diagnostic(`seed ${SEED}`)
      const once = async (path: Path) => {
        const queue = `q${++count}`
        for (const { operations } of stores) await operations.configure({ queue, running: 5, capacity: 100 })
        await gates.race(
          path,
          changes.map((change, at) => () => change(stores[at] as Store, queue)),
        )
        await assertAlike(queue, path)
        return true
      }
      await inAllOrders(once, { most: MOST_ORDERS, random: seeded(SEED) })
    })
  }

  /** What the partitions keep of it, and that they share the limits which are told. */
  async function assertAlike(queue: string, { order }: Path): Promise<void> {
    const keys = await keysOf(client, prefix)
    const hashes = async (name: string) => {
      const own = keys.filter((key) => new RegExp(`:${queue}(#\\d+)?:${name}$`).test(key)).sort()
      return Promise.all(own.map((key) => client.hgetall(key)))
    }
    const [queues, limits] = [await hashes('queue'), await hashes('limits')]
    assert.equal(queues.length, PARTITIONS)
    for (const name of ['code', 'operator', 'paused', 'attempts', 'keepDead', 'limits', 'turn', 'ownTurn']) {
      const values = queues.map((each) => each[name] ?? UNSET[name])
      assert.equal(new Set(values).size, 1, `${order}: ${name}: ${values}`)
    }
    assert.equal(new Set(limits.map(({ groupRunning }) => groupRunning)).size, 1, order)
    const report = await stores[0]?.operations.settings({ queue })
    const sum = (shares: (string | undefined)[]) => shares.reduce((total, share) => total + Number(share ?? 0), 0)
    assert.equal(sum(limits.map(({ running }) => running)), report?.values.running ?? 0, `${order}: running`)
    assert.equal(sum(queues.map(({ capacity }) => capacity)), report?.values.capacity, `${order}: capacity`)
    const [ungrouped] = (await stores[0]?.operations.groups({ queue, limit: 1, group: '' })) ?? []
    if (ungrouped?.limits)
      assert.ok([3, 6].includes(ungrouped.limits.running ?? 0), `${order}: running without a group`)
  }
})
