/**
 * Firing, in every order: two processes each look and then fire, while a third one changes the schedule. Whatever the order, a time has one
 * job at most, and one that no change took away has one.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { firingOf } from '../../src/values/schedules/firing.ts'
import type { Declaration, Firing } from '../../src/values/schedules/records.ts'
import { sample } from '../support/depth.ts'
import { PLACES, type Processes } from './processes.ts'
import { clock } from './world.ts'

const EVERY = 10_000

const declaration = (name: string, version: string): Declaration => ({
  ...{ name, version, when: 'every 10s', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
  ...{ paused: false, again: false },
  job: {
    ...{ queue: name, priority: 4, key: null, group: null, cost: 1, attempts: 1, timeout: null },
    data: { encoding: 'json', body: JSON.stringify(version) },
  },
})

type Step = (store: Store, name: string) => Promise<unknown>

const CHANGES: Record<string, Step> = {
  nothing: async () => {},
  'a new version': ({ operations }, name) => operations.declare({ schedules: [declaration(name, 'new')] }),
  'a pause and a resume': async ({ operations }, name) => {
    await operations.pauseSchedule({ name, paused: true })
    await operations.pauseSchedule({ name, paused: false })
  },
  'a removal': ({ operations }, name) => operations.removeSchedule({ name }),
}

/** Each order of so many steps of each session, which keep their own order. */
function orders(left: readonly number[]): number[][] {
  if (left.every((count) => count === 0)) return [[]]
  return left.flatMap((count, session) =>
    count === 0
      ? []
      : orders(left.map((each, at) => (at === session ? each - 1 : each))).map((rest) => [session, ...rest]),
  )
}

/** A process that looks, and fires what it saw. */
function looking(store: Store, name: string): Step[] {
  let firings: Firing[] = []
  return [
    async () => {
      const { schedules } = await store.operations.sweep({ limit: 100 })
      const due = schedules?.due.filter((record) => record.name === name) ?? []
      firings = due.map((record) => firingOf(record, schedules?.now ?? 0))
    },
    () => store.operations.fire({ firings }),
  ]
}

for (const { name: place, skip, open } of PLACES) {
  describe(`firing in every order: ${place}`, { skip }, () => {
    let processes: Processes
    let count = 0
    before(async () => {
      processes = await open(2)
    })
    after(() => processes.close())

    for (const [about, change] of Object.entries(CHANGES)) {
      test(about, async (t) => {
        const [one, other = one] = processes.stores
        assert.ok(one !== undefined && other !== undefined)
        if (!one.capabilities.schedules) return t.skip('the store lacks schedules')
        for (const order of sample(orders([2, 2, 1]), 6)) {
          const name = `s${process.pid}.${++count}`
          await one.operations.declare({ schedules: [declaration(name, 'old')] })
          for (const step of looking(one, name)) await step(one, name)
          clock.now = (Math.floor(clock.now / EVERY) + 1) * EVERY
          const time = clock.now
          const sessions: Step[][] = [looking(one, name), looking(other, name), [change]]
          for (const session of order) await sessions[session]?.shift()?.(other, name)
          for (const step of looking(one, name)) await step(one, name)
          const pushed = await total(one, name)
          assert.ok(pushed <= 1, `${order}: ${pushed} jobs of ${time}`)
          if (about === 'nothing' || about === 'a new version') assert.equal(pushed, 1, `${order}: none was pushed`)
          await one.operations.removeSchedule({ name })
        }
      })
    }
  })
}

async function total({ operations }: Store, queue: string): Promise<number> {
  const [stats] = await operations.stats({ queue })
  return stats?.totals.pushed ?? 0
}
