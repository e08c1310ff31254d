/** Producers and workers in processes of their own: how many connections each of them has, at work and after a crash of the server. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/until.ts'
import { backend, MODES } from './backends.ts'
import { Crew } from './crew.ts'
import { judge, notesOf } from './verdict.ts'

const EACH = 4
const MOST = 10
/** Between two looks at the server, in milliseconds. */
const LOOK = 100
/** How often all of them must be seen at once, before and after the crash. */
const LOOKS = 5

for (const mode of MODES) {
  const { name, transaction } = mode
  if (name === 'postgres') continue // transactions take further connections
  test(`${name}: ${EACH} producers and ${EACH} workers have at most ${MOST} connections each`, async (t) => {
    const server = await backend(t, mode)
    if (server === undefined) return
    // Each comes as a user of its own, by which the server tells them apart.
    const users = Array.from({ length: 2 * EACH }, (_, i) => `member_${i}`)
    await server.addUsers(users)
    const most = new Map<string, number>()
    const watching = new AbortController()
    let looks = 0
    const watch = async () => {
      while (!watching.signal.aborted) {
        // While the server is down there is nobody to ask.
        const now = await server.connections().catch(() => new Map<string, number>())
        for (const [user, count] of now) most.set(user, Math.max(count, most.get(user) ?? 0))
        if (now.size >= users.length) looks++
        await sleep(LOOK)
      }
    }
    const watched = watch()
    const seen = (times: number) => {
      const goal = looks + times
      return until(() => looks >= goal, 'the server was looked at')
    }
    try {
      const crew = new Crew(t, { url: server.url, transaction, producers: 0, workers: 0 })
      for (const [i, user] of users.entries()) {
        const url = new URL(server.url)
        url.username = user
        url.password = 'any'
        if (i < EACH) crew.addProducer(url.href)
        else crew.addWorker(url.href)
      }
      await crew.atWork()
      await seen(LOOKS)
      await server.crash(true)
      await server.restart()
      await crew.goOn()
      await seen(LOOKS)
      await crew.settle()
      judge(t, `${name}, ${users.length} processes`, crew, notesOf(crew, await server.effects()), {
        transaction,
      })
    } finally {
      watching.abort()
      await watched
    }
    const counts = users.map((user) => most.get(user) ?? 0)
    t.diagnostic(`${name}: most connections of each producer and worker, in ${looks} looks: ${counts.join(' ')}`)
    assert.ok(counts.every((count) => count >= 1 && count <= MOST))
  })
}
