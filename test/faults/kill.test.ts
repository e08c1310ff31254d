/**
 * Producers and workers on one store are killed (SIGKILL) at random moments under load, every fourth time all of them at once, and replaced.
 * In the end all are killed, and one worker does what is left. MILLPOND_FAULT_SEED sets the moments and the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { Crew, type Member, QUEUE, successes } from './crew.ts'
import { seeded } from './harness.ts'
import { PLACES } from './places.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(1, 12)
/** Most successes of all together between two rounds. */
const LOAD = 60

/** Most are at work, and have got something more done. */
async function underLoad(crew: Crew, more: number): Promise<void> {
  const done = () => crew.all.reduce((sum, member) => sum + successes(member), 0)
  const goal = done() + more
  await until(() => {
    crew.assertAlive()
    const busy = crew.members.filter(({ child }) => child.said('busy').length > 0)
    return busy.length >= crew.members.length - 1 && done() >= goal
  }, 'most are at work')
}

function victimsOf(crew: Crew, round: number, random: () => number): Member[] {
  // With nobody left, whoever comes next finds what the dead left, such as SQLite's write-ahead log.
  if (round % 4 === 3) return [...crew.members]
  const mates = random() < 0.7 ? crew.workers : crew.producers
  const nth = Math.floor(random() * mates.length)
  return mates.slice(nth, nth + 1)
}

async function rage(t: TestContext, name: string): Promise<void> {
  const place = await PLACES[name]?.(t)
  if (place === undefined) return
  const random = seeded(SEED)
  const { url, transaction, table } = place
  const crew = new Crew(t, { url, transaction, table })
  const [producers, workers] = [crew.producers.length, crew.workers.length]
  let kills = 0
  for (let round = 0; round < ROUNDS; round++) {
    await underLoad(crew, Math.ceil(random() * LOAD))
    const victims = victimsOf(crew, round, random)
    await crew.kill(victims)
    kills += victims.length
    while (crew.producers.length < producers) crew.addProducer()
    while (crew.workers.length < workers) crew.addWorker()
  }
  await underLoad(crew, LOAD)
  kills += crew.members.length
  await crew.kill(crew.members)
  crew.addWorker()
  await crew.settle()

  const notes = notesOf(crew, await place.effects())
  const figures = judge(t, `${name}, ${kills} kills, seed ${SEED}`, crew, notes, { transaction })
  assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  // A claim that is over cannot come again, so not even a repeated effect has the same fence.
  assert.equal(new Set(notes.effects.map(({ id, fence }) => `${id} ${fence}`)).size, notes.effects.length)
  assert.deepEqual(place.faults(QUEUE), [])
  // Under a heavy load on a slow disk a lock may be held for long; anything else is a fault of ours.
  const troubles = crew.all.flatMap(({ child }) => child.said('trouble').map(({ message }) => String(message)))
  assert.deepEqual(
    troubles.filter((trouble) => !trouble.includes('busyTimeout')),
    [],
  )
}

describe('nothing acknowledged is lost to SIGKILL; with transactions, nothing is applied twice', {
  concurrency: 2,
}, () => {
  for (const name of Object.keys(PLACES)) test(name, (t) => rage(t, name))
})
