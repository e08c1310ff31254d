/**
 * The network between processes and server misbehaves under load: connections are cut, refused for a while, or everything that is
 * sent is swallowed for longer than a lease. MILLPOND_FAULT_SEED sets their kinds and moments.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import { after } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { backend, MODES, through } from './backends.ts'
import { Crew } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(2, 12)

const FAULTS: readonly ((proxy: TcpProxy, random: () => number) => Promise<void>)[] = [
  async function cut(proxy) {
    proxy.cut()
  },
  async function refuse(proxy, random) {
    await proxy.block()
    proxy.cut()
    await sleep(200 + random() * 600)
    await proxy.allow()
  },
  // What was swallowed arrives late, and so do the answers.
  async function swallow(proxy, random) {
    await proxy.blackhole()
    await sleep(1200 + random() * 1800)
    await proxy.allow()
  },
  async function swallowAndCut(proxy, random) {
    await proxy.blackhole()
    await sleep(1200 + random() * 1800)
    proxy.cut()
    await proxy.allow()
  },
]

for (const mode of MODES) {
  const { name, transaction } = mode
  test(`${name}: nothing acknowledged is lost by a bad network`, async (t) => {
    const server = await backend(t, mode)
    if (server === undefined) return
    const proxy = await startProxy(server.port)
    after(t, () => proxy.stop())
    const random = seeded(SEED)
    const crew = new Crew(t, { url: server.url, transaction, producers: 1, workers: 1 })
    // One of each has a good line, so that others take what the cut-off ones hold, and the latter find it done.
    crew.addProducer(through(server.url, proxy.port))
    for (let i = 0; i < 2; i++) crew.addWorker(through(server.url, proxy.port))
    await crew.atWork()
    const kinds = new Map<string, number>()
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(random() * 150)
      const fault = FAULTS[round % FAULTS.length]
      assert.ok(fault)
      await fault(proxy, random)
      kinds.set(fault.name, (kinds.get(fault.name) ?? 0) + 1)
      await crew.goOn()
    }
    await crew.settle()
    const words = [...kinds].map(([kind, count]) => `${count} × ${kind}`).join(', ')
    const notes = notesOf(crew, await server.effects())
    const figures = judge(t, `${name}, ${words}, seed ${SEED}`, crew, notes, { transaction })
    assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  })
}
