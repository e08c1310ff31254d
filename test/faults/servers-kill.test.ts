/**
 * Workers on a server are killed (SIGKILL) at random moments under load, now and then all of them at once, and replaced.
 * MILLPOND_FAULT_ROUNDS sets the rounds, MILLPOND_FAULT_SEED the moments and the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, MODES } from './backends.ts'
import { Crew, rounds } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = rounds(2)

for (const mode of MODES) {
  const { name, transaction } = mode
  test(`${name}: nothing acknowledged is lost with a killed worker${transaction ? ', nothing is applied twice' : ''}`, async (t) => {
    const server = await backend(t, mode)
    if (server === undefined) return
    const random = seeded(SEED)
    const crew = new Crew(t, { url: server.url, transaction })
    for (let round = 0; round < ROUNDS; round++) {
      await crew.atWork()
      await sleep(random() * 150)
      const victim = crew.workers[Math.floor(random() * crew.workers.length)]
      assert.ok(victim)
      const victims = round % 2 === 1 ? [...crew.workers] : [victim]
      await crew.kill(victims)
      for (const _ of victims) crew.addWorker()
    }
    await crew.atWork()
    await crew.settle()
    const notes = notesOf(crew, await server.effects())
    const figures = judge(t, `${name}, ${ROUNDS} kills of workers, seed ${SEED}`, crew, notes, { transaction })
    assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  })
}
