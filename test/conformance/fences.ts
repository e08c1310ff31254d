import assert from 'node:assert/strict'
import type { Input, Store } from '../../src/store.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'

/**
 * Vectors and the model count a job's fences from 1. On Redis the first one is a high number, since a server that was emptied gives out no fence again.
 * On RabbitMQ some are left out: it counts deliveries that came while their consumer ended.
 */
export function countingFences(store: Store): Store {
  const { operations } = store
  /** By queue and id: the number before the first fence. */
  const before = new Map<string, number>()
  /** By queue and id: how many fences were given out. */
  const given = new Map<string, number>()
  /** By queue and id: the fence that a job came back with. */
  const restored = new Map<string, number>()
  /** Jobs that are pushed then begin above the fences of those that were removed. */
  let isRemoving = false
  const beforeOf = (queue: string, id: string): number => before.get(`${queue} ${id}`) ?? 0

  function held<Item extends { id: string; fence: number }>({
    queue,
    items,
    ...rest
  }: {
    queue: string
    items: readonly Item[]
  }) {
    return { ...rest, queue, items: items.map((item) => ({ ...item, fence: item.fence + beforeOf(queue, item.id) })) }
  }

  function counted<Told extends JobRecord>(record: Told): Told {
    const name = `${record.queue} ${record.id}`
    const first = before.get(name)
    return { ...record, fence: first === undefined ? (restored.get(name) ?? 0) : record.fence - first }
  }

  async function claim(input: Input<'claim'>) {
    const claimed = await operations.claim(input)
    const jobs = claimed.jobs.map((job) => {
      const name = `${input.queue} ${job.id}`
      const count = (given.get(name) ?? restored.get(name) ?? 0) + 1
      given.set(name, count)
      const known = store.name === 'rabbitmq' ? undefined : before.get(name)
      const first = known ?? job.fence - count
      assert.ok(
        first === 0 || ['redis', 'rabbitmq'].includes(store.name) || store.capabilities.spill || isRemoving,
        `the first fence is ${job.fence}`,
      )
      before.set(name, first)
      return { ...job, fence: job.fence - first }
    })
    return { ...claimed, jobs }
  }

  return {
    ...store,
    operations: {
      ...operations,
      claim,
      remove(input) {
        isRemoving = true
        return operations.remove(input)
      },
      bulk(input) {
        if (input.change.kind === 'remove') isRemoving = true
        return operations.bulk(input)
      },
      async restore({ records }) {
        const told = records.map((record) => ({ ...record, fence: record.fence + beforeOf(record.queue, record.id) }))
        const outcomes = await operations.restore({ records: told })
        for (const [at, { queue, id, fence }] of records.entries()) {
          if (outcomes[at] === 'restored') restored.set(`${queue} ${id}`, fence)
        }
        return outcomes
      },
      complete: (input) => operations.complete(held(input)),
      fail: (input) => operations.fail(held(input)),
      release: (input) => operations.release(held(input)),
      journal: (input) => operations.journal(held(input)),
      extend: (input) => operations.extend({ ...input, ...held(input) }),
      find: async (input) => (await operations.find(input)).map((record) => record && counted(record)),
      async list(input) {
        const listed = await operations.list(input)
        return { ...listed, jobs: listed.jobs.map(counted) }
      },
    },
  }
}
