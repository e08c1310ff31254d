/**
 * A worker on a server is stopped (SIGSTOP) under load until others have begun, or done, its jobs, then goes on (SIGCONT): what it
 * still says of them is refused, and it works on as if nothing had been.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { backend, MODES } from './backends.ts'
import { Crew, type Member, successes } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, lastRuns, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(2, 8)

interface Held {
  id: string
  attempt: number
}

/** Runs that the worker has begun and not yet ended. */
function heldBy({ journal }: Member): Held[] {
  const held = new Map<string, Held>()
  for (const line of journal.lines) {
    const [word, id = '', attempt = ''] = line.split(' ')
    const run = `${id} ${attempt}`
    if (word === 'start') held.set(run, { id, attempt: Number(attempt) })
    else if (word !== 'effect') held.delete(run)
  }
  return [...held.values()]
}

/** Tells how many of the jobs these workers have begun from now on. */
function watchStarts(workers: readonly Member[], held: readonly Held[]): () => number {
  const ids = new Set(held.map(({ id }) => id))
  const from = workers.map(({ journal }) => journal.lines.length)
  return () => {
    const lines = workers.flatMap(({ journal }, i) => journal.lines.slice(from[i]))
    return lines.filter((line) => line.startsWith('start ') && ids.has(line.split(' ')[1] ?? '')).length
  }
}

for (const mode of MODES) {
  const { name, transaction } = mode
  test(`${name}: a worker stopped past its lease is refused all that others have done`, async (t) => {
    const server = await backend(t, mode)
    if (server === undefined) return
    const pond = await Millpond.open(server.url)
    after(t, () => pond.close())
    const random = seeded(SEED)
    // Handlers take longer than endings, so that most of what a stopped worker holds is not yet told, and what others have begun
    // in its stead they have not yet ended.
    const crew = new Crew(t, { url: server.url, transaction, pause: 80 })
    await crew.atWork()
    /** How many are done, by whomever. */
    const done = async (held: readonly Held[]) => {
      const jobs = await Promise.all(held.map(({ id }) => pond.job(id)))
      return jobs.filter((job) => job?.state === 'done').length
    }
    /** Rounds in which the store had heard of all that it held before it stopped: there was nothing to take over. */
    let told = 0
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(random() * 100)
      const stopped = crew.workers[Math.floor(random() * crew.workers.length)]
      assert.ok(stopped)
      await until(() => heldBy(stopped).length >= 6, 'it holds some')
      stopped.child.kill('SIGSTOP')
      const held = heldBy(stopped)
      const begun = watchStarts(
        crew.workers.filter((other) => other !== stopped),
        held,
      )
      if (round % 2 === 0) {
        const all = async () => (await done(held)) === held.length
        await until(async () => begun() > 0 || (await all()), 'others have begun what it held')
        if (begun() === 0) told++
      } else {
        // One whose commit was just being made stays with its transaction; it is the others' as soon as that ends.
        const committing = transaction ? 3 : 0
        await until(async () => (await done(held)) >= held.length - committing, 'others have done what it held')
      }
      const before = successes(stopped)
      stopped.child.kill('SIGCONT')
      await until(() => successes(stopped) >= before + 5, 'it goes on')
    }
    await crew.settle()

    const notes = notesOf(crew, await server.effects())
    const figures = judge(t, `${name}, ${ROUNDS} workers stopped, seed ${SEED}`, crew, notes, { transaction })
    // Every process lived on to tell: each run that another came after was refused, or had failed before that.
    const last = lastRuns(notes)
    const late = notes.runs.filter(({ id, attempt }) => attempt < (last.get(id) ?? 0))
    const ended = new Set([...notes.stale, ...notes.failed])
    assert.deepEqual(
      late.filter(({ id, attempt }) => !ended.has(`${id} ${attempt}`)),
      [],
    )
    assert.ok(late.length >= ROUNDS - told && figures['stale refused'] >= ROUNDS - told, 'too little was taken over')
    assert.ok(told < ROUNDS / 4, 'too seldom was there anything to take over')
    assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  })
}
