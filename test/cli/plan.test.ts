/** `millpond plan`: from figures that are given, and from a store. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { scratch } from '../support/cleaning.ts'
import { ran } from './in-process.ts'

test('a plan of given figures, for people and for programs', async () => {
  const args = [
    'plan',
    '--rate',
    '100/s',
    '--work',
    '5s',
    '--surge',
    '30s',
    '--drain-within',
    '1m',
    '--concurrency',
    '20',
  ]
  const { code, out } = await ran(args)
  assert.equal(code, 0)
  for (const line of [
    /^workers +167$/m,
    /^processes +9$/m,
    /^queue size +1,998$/m,
    /^time to drain +59\.8s$/m,
    /^load: a = rate/m,
  ]) {
    assert.match(out, line)
  }
  const json = await ran([...args, '--json'])
  assert.equal(JSON.parse(json.out).workers, 167)
  assert.equal(json.out.split('\n').length, 2)
})

test('a plan of what a queue has measured', async (t) => {
  const store = `sqlite:${join(scratch(t), 'plan.db')}`
  const pond = await Millpond.open(store)
  const queue = pond.queue('q')
  const [first] = await queue.pushMany([1, 2, 3])
  const worker = queue.work(() => {})
  await pond.result(first?.id ?? '')
  await worker.close()
  await pond.close()
  const { code, out } = await ran(['plan', '--queue', 'q', '--json'], { MILLPOND_STORE: store })
  assert.equal(code, 0)
  const plan = JSON.parse(out)
  assert.equal(plan.measured.minutes, 5)
  assert.ok(plan.measured.rate > 0 && plan.measured.work > 0 && plan.workers >= 1, out)
  assert.match((await ran(['plan', '--queue', 'q', '--store', store])).out, /^rate, last 5 min +0\.01\/s$/m)
})

test('a plan of a queue that no job has run in, of none, and of no store', async (t) => {
  const store = `sqlite:${join(scratch(t), 'plan.db')}`
  const missing = await ran(['plan', '--queue', 'mails', '--store', store])
  assert.deepEqual([missing.code, /there is no SQLite file/.test(missing.err)], [1, true])
  const pond = await Millpond.open(store)
  await pond.queue('mails').push(1)
  await pond.close()
  const fresh = await ran(['plan', '--queue', 'mails', '--store', store])
  assert.match(fresh.out, /^jobs that wait now +1\nworkers +1\n\nNo job has ended/m)
  const misspelt = await ran(['plan', '--queue', 'mials', '--store', store])
  assert.deepEqual([misspelt.code, misspelt.out], [3, ''])
  assert.match(misspelt.err, /QueueUnknown: the store has no queue "mials"; did you mean mails\?/)
})

test('waits are those after the backlog, and long times are minutes and seconds', async () => {
  const { out } = await ran(['plan', '--rate', '100/s', '--work', '20ms', '--backlog', '100000'])
  assert.match(out, /^mean wait after that +0ms$/m)
  assert.match((await ran(['plan', '--rate', '6/h', '--work', '10m'])).out, /^mean wait +3m 20s$/m)
})

for (const [args, message] of [
  [['--rate', '1/s'], /--rate and --work are needed/],
  [['--rate', 'many', '--work', '1s'], /such as '100\/s'/],
  [['--rate', '1/s', '--work', '1s', '--variation', 'high'], /--variation is a number/],
  [['--rate', '1/s', '--work', '1s', '--minutes', '5'], /--minutes goes with --queue/],
  [['--queue', 'q'], /--store is missing/],
  [['--queue', 'q', '--backlog', '5'], /--backlog is measured/],
  [['--rate', '1000/s', '--work', '1h'], /more than 1000000 workers/],
] as const) {
  test(`refused: ${args.join(' ')}`, async () => {
    const { code, err } = await ran(['plan', ...args])
    assert.equal(code, 2)
    assert.match(err, message)
  })
}
