/** What is told of a long run, on a terminal and in a pipe. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lasting } from '../../src/cli/figures.ts'
import { ProgressLine, progressText } from '../../src/cli/progress.ts'
import { styled } from '../../src/cli/terminal.ts'

function terminal(isTTY: boolean, env: Record<string, string> = {}) {
  let told = ''
  return {
    env,
    out: () => {},
    err: (text: string) => {
      told += text
    },
    isTTY: { out: isTTY, err: isTTY },
    columns: () => 40,
    told: () => told,
  }
}

const HALF = { done: 500_000, total: 1_000_000, rate: 20_000, left: 25_000 }

test('a progress as text', () => {
  assert.equal(
    progressText(HALF, 'jobs', true),
    '[##########..........] 50 % 500,000 of 1,000,000 jobs, 20,000/s, 25s left',
  )
  assert.equal(progressText({ done: 7, total: null, rate: 0.6, left: null }, 'jobs', true), '7 jobs, 1/s')
  assert.equal(progressText({ done: 9, total: 3, rate: 1, left: 0 }, 'jobs', false), '100 % 9 of 3 jobs, 1/s, 0s left')
  assert.deepEqual([59_001, 60_000, 3_599_000, 7_800_000].map(lasting), ['1m 0s', '1m 0s', '59m 59s', '2h 10m'])
})

test('on a terminal one line is redrawn, no longer than the screen, and cleared', () => {
  const screen = terminal(true)
  let now = 0
  const line = new ProgressLine(screen, 'jobs', () => now)
  line.update(HALF)
  line.update(HALF)
  assert.equal(screen.told(), '\r\x1b[K[##########..........] 50 % 500,000 of ')
  now = 100
  line.update({ ...HALF, done: 0 })
  line.clear()
  line.clear()
  assert.equal(screen.told().split('\r\x1b[K').length, 4)
  assert.ok(!screen.told().includes('\n'))
})

test('in a pipe there is a line now and then, without a bar', () => {
  const pipe = terminal(false)
  let now = 0
  const line = new ProgressLine(pipe, 'jobs', () => now)
  for (; now <= 20_000; now += 1000) line.update(HALF)
  line.clear()
  assert.equal(pipe.told(), '50 % 500,000 of 1,000,000 jobs, 20,000/s, 25s left\n'.repeat(2))
})

test('colours are for terminals, and not with NO_COLOR', () => {
  assert.equal(styled(terminal(true), 'out', 'bold', 'x'), '\x1b[1mx\x1b[22m')
  assert.equal(styled(terminal(false), 'out', 'bold', 'x'), 'x')
  assert.equal(styled(terminal(true, { NO_COLOR: '1' }), 'out', 'bold', 'x'), 'x')
  assert.equal(styled(terminal(true, { TERM: 'dumb' }), 'err', 'bold', 'x'), 'x')
})
