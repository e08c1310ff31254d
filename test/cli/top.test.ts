/** `millpond top`: frames as text, and the program on a pseudo terminal. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { frameOf } from '../../src/cli/top/frame.ts'
import { linesOf, type Sample, SORTS, sorted } from '../../src/cli/top/sample.ts'
import { Millpond } from '../../src/index.ts'
import { queueReport } from '../../src/pond/stats.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { environment, MAIN } from './fixture.ts'
import { ran } from './in-process.ts'

const EMPTY = queueReport('none')

/** A store at a moment, in milliseconds. */
function sample(
  at: number,
  queues: readonly { queue: string; waiting: number; pushed: number; dead?: number }[],
): Sample {
  const reports = queues.map(({ queue, waiting, pushed, dead = 0 }) => ({
    ...EMPTY,
    queue,
    lastClaim: 0,
    counts: { ...EMPTY.counts, waiting, running: 2, dead },
    totals: { ...EMPTY.totals, pushed, done: pushed - waiting },
    oldestWaiting: waiting > 0 ? 65_000 : null,
    wait: { count: 10, p50: 12.3, p95: 4567, p99: 9000 },
  }))
  const seen = new Date()
  const workers = queues.map(({ queue }) => ({
    ...{ id: `w-${queue}`, queue, host: 'one', pid: 1, slots: 50, busy: 2, lanes: null, since: seen, seen },
    ...{ silence: 0, silent: false },
  }))
  return { at, reports, workers }
}

const frame = (now: Sample, before: Sample | undefined, more: object = {}) =>
  frameOf({
    ...{ now, before, store: 'sqlite', clock: '12:00:00', minutes: 5, sort: 'waiting', skip: 0 },
    ...{ columns: 80, rows: 24, hasKeys: true, ...more },
  })

test('rates are what happened between two looks; a queue that is new has none, one made anew none below 0', () => {
  const before = sample(1000, [
    { queue: 'a', waiting: 10, pushed: 100 },
    { queue: 'b', waiting: 0, pushed: 500 },
  ])
  const now = sample(3000, [
    { queue: 'a', waiting: 30, pushed: 300 },
    { queue: 'b', waiting: 0, pushed: 4 },
    { queue: 'c', waiting: 1, pushed: 1 },
  ])
  assert.deepEqual(
    linesOf(now, before).map(({ queue, arrivals, completions }) => [queue, arrivals, completions]),
    [
      ['a', 100, 90],
      ['b', 0, 0],
      ['c', null, null],
    ],
  )
  assert.deepEqual(linesOf(now, undefined)[0]?.arrivals, null)
  for (const sort of SORTS) assert.equal(sorted(linesOf(now, before), sort).length, 3)
  assert.equal(sorted(linesOf(now, before), 'arrivals')[0]?.queue, 'a')
})

test('a frame fits 80 x 24, with any number of queues, and says what needs attention', () => {
  const many = Array.from({ length: 200 }, (_, at) => ({
    queue: `queue-of-a-long-name-${at}`,
    waiting: at * 1_234_567,
    pushed: 2 ** 52,
    dead: at,
  }))
  for (const [columns, rows] of [
    [80, 24],
    [40, 10],
    [200, 60],
    [20, 5],
  ] as const) {
    const lines = frame(sample(2000, many), sample(0, many), { columns, rows })
    assert.equal(lines.length, rows)
    assert.deepEqual(
      lines.filter(({ text }) => text.length > columns),
      [],
    )
  }
  const shown = frame(sample(2000, many), sample(0, many)).map(({ text }) => text)
  assert.match(shown[4] ?? '', /^queue +waiting +run +dead +in\/s +out\/s +fail\/s +p50 +p95 +oldest +busy$/)
  assert.match(shown[5] ?? '', /246M/)
  assert.match(shown.join('\n'), /199 jobs are dead → millpond jobs/)
  assert.match(shown.join('\n'), /and \d+ more$/m)
})

test('one queue at 80 columns, to the letter', () => {
  const before = sample(0, [{ queue: 'mails', waiting: 1000, pushed: 5000 }])
  const now = sample(2000, [{ queue: 'mails', waiting: 1200, pushed: 5400 }])
  assert.deepEqual(
    frame(now, before)
      .slice(0, 7)
      .map(({ text }) => text.trimEnd()),
    [
      'millpond top   sqlite   1 queue   waits of the last 5 min   12:00:00',
      'waiting 1200   running 2   scheduled 0   dead 0   1 worker in 1 process',
      'in 200/s   out 100/s   failed 0/s   2 of 50 slots busy',
      '',
      'queue     waiting   run  dead  in/s out/s fail/s    p50    p95  oldest      busy',
      'mails        1200     2     0   200   100      0 12.3ms  4.57s    1m5s      2/50',
      '',
    ],
  )
  const scrolled = frame(
    sample(
      0,
      [...'abcdefghijklmnopqrstuvwxyz'].map((queue) => ({ queue, waiting: 0, pushed: 0 })),
    ),
    undefined,
    {
      ...{ sort: 'name', skip: 3 },
    },
  )
  assert.match(scrolled[5]?.text ?? '', /^d /)
})

test('in a pipe it is one picture, and with --json a line for each queue', async (t) => {
  const store = `sqlite:${join(scratch(t), 'top.db')}`
  const pond = await Millpond.open(store)
  await pond.queue('mails').pushMany([1, 2, 3])
  await pond.close()
  const { code, out } = await ran(['top', '--every', '100ms', '--store', store])
  assert.equal(code, 0)
  assert.match(out, /^mails +3 +0 +0 +0 +0 +0 /m)
  assert.match(out, /mails: 3 jobs wait, and no worker has ever asked for jobs/)
  const [line] = (await ran(['top', '--every', '100ms', '--json', '--store', store])).out.split('\n')
  assert.deepEqual([JSON.parse(line ?? '').queue, JSON.parse(line ?? '').arrivals], ['mails', 0])
})

const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0
/** Runs a command on a terminal of 80 x 24, and passes both directions on. */
const PTY = `
import fcntl, os, pty, select, struct, sys, termios
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
open_ = True
while True:
    ready, _, _ = select.select([fd, 0] if open_ else [fd], [], [])
    if 0 in ready:
        data = os.read(0, 1000)
        if data: os.write(fd, data)
        else: open_ = False
    if fd in ready:
        try: data = os.read(fd, 10000)
        except OSError: break
        if not data: break
        os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

test('on a terminal it draws, takes keys, and leaves the screen as it was', {
  skip: !hasPython && 'no python3',
}, async (t) => {
  const store = `sqlite:${join(scratch(t), 'top.db')}`
  const pond = await Millpond.open(store)
  after(t, () => pond.close())
  await pond.queue('mails').pushMany([1, 2, 3])
  const args = ['-c', PTY, process.execPath, MAIN, 'top', '--every', '100ms']
  const child = spawn('python3', args, { env: environment({ MILLPOND_STORE: store, TERM: 'xterm' }) })
  const closed = once(child, 'close')
  after(t, () => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    seen += text
  })
  const sees = (what: RegExp) => until(() => what.test(seen), `${what}`)
  await until(() => seen.includes('\x1b[?1049h'), 'the other screen')
  await sees(/mails +3 /)
  await pond.queue('mails').pushMany([4, 5])
  await sees(/mails +5 /)
  child.stdin.write('s')
  await sees(/by arrivals/)
  child.stdin.write('q')
  await closed
  assert.equal(child.exitCode, 0, seen)
  assert.ok(seen.endsWith('\x1b[?25h\x1b[?1049l'))
})

test('Ctrl-C ends it, too', { skip: !hasPython && 'no python3' }, async (t) => {
  const store = `sqlite:${join(scratch(t), 'top.db')}`
  await (await Millpond.open(store)).close()
  const child = spawn('python3', ['-c', PTY, process.execPath, MAIN, 'top'], {
    env: environment({ MILLPOND_STORE: store, TERM: 'xterm' }),
  })
  const closed = once(child, 'close')
  after(t, () => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    seen += text
  })
  await until(() => /millpond top/.test(seen), 'a frame')
  child.stdin.write('\x03')
  await closed
  assert.ok(seen.endsWith('\x1b[?25h\x1b[?1049l'), JSON.stringify(seen.slice(-100)))
})
