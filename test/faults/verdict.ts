/** What became of all the jobs of a crew that has settled, from the notes of its processes, alive or dead. */

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Effect } from './backends.ts'
import type { Crew } from './crew.ts'
import type { Origin } from './roles/producer.ts'

/** One run of a handler. */
export interface Run {
  id: string
  attempt: number
  fence: string
  data: string
}

export interface Notes {
  acknowledged: string[]
  effects: Effect[]
  runs: Run[]
  /** `id attempt` of each run with that end, as the worker was told by the store. */
  completed: string[]
  failed: string[]
  stale: string[]
  /** Pushes by their `origin`, and why. */
  rejected: Map<string, string>
}

/** @param effects rows of the table, where workers wrote there */
export function notesOf(crew: Crew, effects: readonly Effect[]): Notes {
  const notes: Notes = {
    acknowledged: [],
    effects: [...effects],
    runs: [],
    completed: [],
    failed: [],
    stale: [],
    rejected: new Map(),
  }
  for (const { child, journal } of crew.all) {
    if (child.role === 'producer') for (const line of journal.lines) notes.acknowledged.push(line)
    else for (const line of journal.lines) note(notes, line)
    for (const { from, n, message } of child.said('rejected')) {
      const origin: Origin = { from: Number(from), n: Number(n) }
      notes.rejected.set(JSON.stringify(origin), String(message))
    }
  }
  return notes
}

function note(notes: Notes, line: string): void {
  const [word, id = '', attempt = '', fence = '', data = ''] = line.split(' ')
  if (word === 'start') notes.runs.push({ id, attempt: Number(attempt), fence, data })
  else if (word === 'effect') notes.effects.push({ id, fence })
  else if (word === 'completed' || word === 'failed' || word === 'stale') notes[word].push(`${id} ${attempt}`)
}

/** The last attempt of each job that a handler was called for. */
export function lastRuns({ runs }: Notes): Map<string, number> {
  const last = new Map<string, number>()
  for (const { id, attempt } of runs) last.set(id, Math.max(attempt, last.get(id) ?? 0))
  return last
}

export interface Circumstances {
  transaction: boolean
  /** The fault may undo a claim, which is not acknowledged like a push, and then its fence is given to the next. Not so unless set. */
  claimsUndone?: boolean
  /** The fault may undo a push that was not acknowledged yet, even of a job that was run already. Not so unless set. */
  pushesUndone?: boolean
}

/** Asserts what holds after any fault. @returns what was counted, for people and for what holds after some */
export function judge(t: TestContext, title: string, crew: Crew, notes: Notes, circumstances: Circumstances) {
  const { transaction, claimsUndone = false, pushesUndone = false } = circumstances
  const { acknowledged, effects, runs, completed } = notes
  const done = new Set(effects.map(({ id }) => id))
  const lost = acknowledged.filter((id) => !done.has(id))
  // The server's part is done, and its answer is lost: whoever made such a push was told that it can be made again.
  const rejectedAndStored = new Map(runs.flatMap(({ id, data }) => (notes.rejected.has(data) ? [[id, data]] : [])))
  const figures = {
    acknowledged: acknowledged.length,
    done: done.size,
    duplicates: effects.length - done.size,
    lost: lost.length,
    'stale refused': notes.stale.length,
    'fences given twice': runs.length - new Set(runs.map(({ id, fence }) => `${id} ${fence}`)).size,
    'pushes rejected': notes.rejected.size,
    'of the rejected stored': rejectedAndStored.size,
  }
  const words = Object.entries(figures).map(([name, figure]) => `${name} ${figure}`)
  t.diagnostic(`${title}: ${words.join(', ')}`)
  const reasons = new Set([...rejectedAndStored.values()].map((origin) => notes.rejected.get(origin)))
  for (const reason of reasons) t.diagnostic(`rejected and stored all the same: ${reason}`)

  assert.deepEqual(lost, [])
  assert.equal(new Set(acknowledged).size, acknowledged.length)
  if (transaction) assert.equal(figures.duplicates, 0)
  if (!claimsUndone) assert.equal(figures['fences given twice'], 0)
  // Whoever was told that it completed a job was its last: no other had it afterwards, and none completed it besides.
  assert.equal(new Set(completed.map((each) => each.split(' ')[0])).size, completed.length)
  const last = lastRuns(notes)
  assert.deepEqual(
    completed.filter((each) => {
      const [id = '', attempt] = each.split(' ')
      return last.get(id) !== Number(attempt)
    }),
    [],
  )
  // The store has done what was done, and nothing else: what it kept of rejected pushes was worked off as well.
  const { done: stored = 0, ...others } = crew.counts ?? {}
  assert.deepEqual(others, { blocked: 0, scheduled: 0, waiting: 0, running: 0, dead: 0, cancelled: 0 })
  if (pushesUndone) assert.ok(stored >= acknowledged.length && stored <= done.size, `${stored} are stored as done`)
  else assert.equal(stored, done.size)
  for (const { child } of crew.all) assert.deepEqual(child.said('dead'), [])
  return figures
}
