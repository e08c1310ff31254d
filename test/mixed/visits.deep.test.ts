/**
 * Processes in both languages that open a SQLite file, all at once while it is new, push, and close it or are killed.
 * SQLite removes its log after the last of them and makes another: no store may take that for another program's doing.
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { untilCalm } from '../support/until.ts'
import { mixedStores } from './places.ts'
import { exitCode, kill, type Language, lines, start } from './processes.ts'

const LANGUAGES: readonly Language[] = ['Python', 'TypeScript']
const ROUNDS = 2
const JOBS = 40

const sqlite = mixedStores.find(({ name }) => name === 'sqlite')

for (const isAlone of [true, false]) {
  test(`sqlite: visitors ${isAlone ? 'alone' : 'beside stores that stay open'}, some killed, are refused nothing`, async (t) => {
    const { url, folder } = sqlite?.place() ?? assert.fail()
    const args = [url, '{}', 'visited']
    const stays = isAlone ? null : await Millpond.open(url)
    t.after(() => stays?.close())
    const worker = isAlone ? null : start(t, 'Python', 'limited', [...args, join(folder, 'runs')])
    let acknowledged = 0
    const visit = (language: Language, isKilled: boolean) => {
      const child = start(t, language, 'produce', [...args, '0', `${JOBS}`])
      child.stdout?.setEncoding('utf8').on('data', (part: string) => {
        acknowledged += lines(part).length
        if (isKilled) void kill(child)
      })
      return child
    }
    for (let round = 0; round < ROUNDS; round++) {
      const killed = LANGUAGES.map((language) => visit(language, true))
      const visitors = LANGUAGES.map((language) => visit(language, false))
      assert.deepEqual(await Promise.all(visitors.map(exitCode)), [0, 0])
      await Promise.all(killed.map(exitCode))
      await stays?.queue('visited').push(round)
    }
    assert.equal(worker?.exitCode ?? null, null)
    const pond = stays ?? (await Millpond.open(url))
    t.after(() => pond.close())
    const { counts } = await pond.queue('visited').stats()
    assert.ok(counts.waiting + counts.running + counts.done >= acknowledged)
    if (worker !== null) {
      await untilCalm(async () => {
        const { waiting, running } = (await pond.queue('visited').stats()).counts
        return waiting + running === 0
      }, 'the worker that stays has run all')
    }
  })
}
