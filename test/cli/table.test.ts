/** Tables: as wide as the terminal, whole in a pipe, and never what drives the terminal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobsTable } from '../../src/cli/job-text.ts'
import { plain, table } from '../../src/cli/table.ts'
import { jobInfo } from '../../src/values/jobs/job.ts'
import { ERROR, recordOf } from '../support/jobs.ts'

const nothing = () => {}
const terminal = (columns: number) => ({
  env: {},
  out: nothing,
  err: nothing,
  isTTY: { out: true },
  columns: () => columns,
})
const pipe = { env: {}, out: nothing, err: nothing }

test('a terminal gets what fits, from the widest column of text first; a pipe gets all', () => {
  const rows = [
    ['a', '1', 'x'.repeat(100)],
    ['b'.repeat(20), '22', 'y'.repeat(30)],
  ]
  const wide = table(pipe, ['name', 'n', 'text'], rows, { text: [2] })
  assert.ok(wide.includes('x'.repeat(100)))
  for (const columns of [20, 40, 60, 80]) {
    // Bold is not counted.
    const lines = table({ ...terminal(columns), env: { NO_COLOR: '1' } }, ['name', 'n', 'text'], rows, {
      text: [2],
    }).split('\n')
    assert.deepEqual(
      lines.filter((line) => line.length > columns),
      [],
    )
  }
  const [, first = ''] = table(terminal(60), null, rows, { text: [2] }).split('\n')
  assert.match(first, /^b{20} {2}22 {2}y+$/)
})

test('no escape, no line and no direction of text comes through', () => {
  assert.equal(plain('a\x1b[31mb\x1b]0;title\x07c\r\nd\u202ee\u0000'), 'abc d\\u202ee\\u0000')
})

test('ids of jobs are whole on a narrow terminal, and columns without anything to tell are left out', () => {
  const jobs = ['tenant-7', null].map((group) =>
    jobInfo(recordOf({ state: 'dead', group, error: { ...ERROR, message: 'm'.repeat(200) } })),
  )
  const shown = jobsTable(terminal(80), jobs, false).split('\n')
  assert.match(shown[0] ?? '', /^\S*id +state +tries +age +group +error/)
  for (const { id } of jobs)
    assert.ok(
      shown.some((line) => line.startsWith(`${id}  dead     0/3 `) && line.length <= 80),
      shown.join('\n'),
    )
  assert.match(jobsTable(pipe, [jobInfo(recordOf())], true).split('\n')[0] ?? '', /^id +state +tries +age +data$/)
})
