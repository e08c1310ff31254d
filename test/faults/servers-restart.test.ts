/**
 * The server is killed (SIGKILL) under load and started again: jobs are late, none is lost, and everybody goes on by himself.
 * MILLPOND_FAULT_SEED sets the moments.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { depth } from '../support/depth.ts'
import { backend, MODES } from './backends.ts'
import { Crew } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(1, 6)

for (const mode of MODES) {
  const { name, transaction } = mode
  test(`${name}: nothing acknowledged is lost when the server is killed and started again`, async (t) => {
    const server = await backend(t, mode)
    if (server === undefined) return
    const random = seeded(SEED)
    const crew = new Crew(t, { url: server.url, transaction })
    await crew.atWork()
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(random() * 150)
      // Without their postmaster, the backends of PostgreSQL may still finish what they do.
      await server.crash(round % 2 === 0)
      await sleep(random() * 300)
      await server.restart()
      await crew.goOn()
    }
    await crew.settle()
    const notes = notesOf(crew, await server.effects())
    const figures = judge(t, `${name}, ${ROUNDS} crashes of the server, seed ${SEED}`, crew, notes, {
      transaction,
    })
    assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  })
}
