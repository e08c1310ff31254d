/** The worked example of contract/sqlite/README.md, "Groups": its steps are run, and each row of its table is compared with the file. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Completion } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'
import { connectTo, newPath, openAt } from './sqlite-fixture.ts'

const PAGE = readFileSync(new URL('../../contract/sqlite/README.md', import.meta.url), 'utf8')
const NAMES = ['a1', 'a2', 'b1', 'c1', 'c2']

/** Cells of the rows after the head and its line, without white space around them. */
const TABLE = (PAGE.split('An example: two slots')[1] ?? '')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').slice(1, -1))
  .map((cells) => cells.map((cell) => cell.trim()))
  .slice(2, 13)

test('the worked example for groups on SQLite', async () => {
  const clock = { now: 1_800_000_000_000 }
  const path = newPath()
  const store = await openAt(path, { clock: () => clock.now })
  const db = connectTo(path)
  const jobs = NAMES.map((name) => newJob({ group: name.charAt(0).toUpperCase() }))
  const nameOf = (id: unknown): string => NAMES[jobs.findIndex((job) => job.id === id)] ?? ''
  const held = new Map<string, Completion>()

  const cellsOf = (step: string): string[] => {
    const list = (sql: string) => db.prepare(sql).all()
    const groups = new Map(
      list('select name, running, touched, ticket, turn from millpond_groups').map(({ name, ...row }) => [name, row]),
    )
    const jobAt = new Map(
      list('select g.name, j.id from millpond_groups as g join millpond_jobs as j on j.seq = g.place').map((row) => [
        row.name,
        nameOf(row.id),
      ]),
    )
    const cells = ['A', 'B', 'C'].map((name) => {
      const group = groups.get(name)
      if (group === undefined) return ''
      const state = group.touched === 1 ? 'touched' : 'none'
      return `${group.running}, ${Number(group.ticket) >= 0 ? `ticket ${group.turn} ${jobAt.get(name)}` : state}`
    })
    const turns = list('select name, virtual from millpond_turns join millpond_groups on id = group_id order by name')
    const virtual = list('select virtual from millpond_virtual').map((row) => row.virtual)
    const running = list("select id from millpond_jobs where state = 'running' order by seq").map(({ id }) =>
      nameOf(id),
    )
    return [
      step,
      ...cells,
      turns.map((row) => `${row.name} ${row.virtual}`).join(', '),
      virtual.join(''),
      running.join(' '),
    ]
  }
  const claim = async () => {
    const claimed = await store.operations.claim({ queue: 'q', worker: 'w', limit: 2, lease: 60_000 })
    for (const { id, fence } of claimed.jobs) held.set(nameOf(id), { id, fence, result: null })
  }
  const complete = async (...names: string[]) => {
    const items = names.map((name) => held.get(name) ?? assert.fail(`${name} does not run`))
    assert.ok((await store.operations.complete({ queue: 'q', items })).every((outcome) => outcome === 'ok'))
  }
  const sweep = async () => {
    clock.now += 10_000
    await store.operations.sweep({ limit: 1000 })
  }

  await store.operations.configure({ queue: 'q', running: 2, groupRunning: 1, keepDone: 0 })
  const steps: [string, () => Promise<unknown>][] = [
    ['push all five', () => store.operations.push({ jobs })],
    ['claim 2', claim],
    ['complete a1', () => complete('a1')],
    ['claim 2', claim],
    ['complete b1', () => complete('b1')],
    ['claim 2', claim],
    ['complete c1, a2', () => complete('c1', 'a2')],
    ['claim 2', claim],
    ['complete c2', () => complete('c2')],
    ['claim 2', claim],
    ['sweep after 10 s', sweep],
  ]
  const found: string[][] = []
  for (const [step, run] of steps) {
    await run()
    found.push(cellsOf(step))
  }
  db.close()
  assert.deepEqual(TABLE, found, found.map((cells) => `| ${cells.join(' | ')} |`).join('\n'))
})
