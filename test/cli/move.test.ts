/** `millpond move`: what it tells people and programs, and its exit codes. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Millpond } from '../../src/index.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after, sharedFolder } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { millpond } from './fixture.ts'
import { ran } from './in-process.ts'

const folder = sharedFolder()
let count = 0
async function filled(): Promise<{ source: string; target: string }> {
  count++
  const [source, target] = ['source', 'target'].map((name) => `sqlite:${join(folder, `${name}-${count}.db`)}`)
  assert.ok(source && target)
  const pond = await Millpond.open(source)
  await pond.queue('emails').pushMany([1, 2, 3])
  await pond.queue('reports').push(1, { delay: '1h', key: 'once' })
  await pond.close()
  return { source, target }
}

test('for people: a table of what was moved, and how fast', async () => {
  const { source, target } = await filled()
  const dry = await ran(['move', source, target, '--dry-run'])
  assert.deepEqual([dry.code, dry.err], [0, ''])
  assert.match(
    dry.out,
    /^queue +blocked +scheduled +waiting .*\nemails +0 +0 +3 +0.*\nreports +0 +1 +0 .*\n4 jobs\. Nothing was moved\.\n$/,
  )
  const moved = await ran(['move', source, target, '--queue', 'emails'])
  assert.equal(moved.code, 0)
  assert.match(moved.out, /emails +0 +0 +3 +0 .*\n3 jobs moved in \d+s, \d+\/s\.\n$/)
  const rest = await ran(['move', 'env:OLD', 'env:NEW'], { OLD: source, NEW: target })
  assert.match(rest.out, /\n1 job moved/)
})

test('for programs: a line for each queue, and one for all', async () => {
  const { source, target } = await filled()
  const { code, out } = await ran(['move', source, target, '--json'])
  const lines = out
    .trim()
    .split('\n')
    .map((line): Record<string, unknown> => JSON.parse(line))
  assert.deepEqual([code, lines.length], [0, 3])
  assert.deepEqual([lines[0]?.queue, lines[1]?.queue, lines[2]?.moved, lines[2]?.left], ['emails', 'reports', 4, 0])
})

test('jobs that cannot be moved make 1, a signal 143, and following until the signal 0', async () => {
  const { source, target } = await filled()
  const pond = await Millpond.open(target)
  await pond.queue('reports').push(2, { key: 'once', delay: '2h' })
  const partly = await ran(['move', source, target])
  assert.equal(partly.code, 1)
  assert.match(partly.out, /1 of reports stay at the source: another live job at the target has their key\./)
  const aborted = await ran(['move', source, target], {}, AbortSignal.abort('SIGTERM'))
  assert.equal(aborted.code, 143)

  const old = await Millpond.open(source)
  await old.queue('emails').push('late')
  const stop = new AbortController()
  const following = ran(['move', source, target, '--follow', '--queue', 'emails'], {}, stop.signal)
  await until(async () => (await pond.stats())[0]?.counts.waiting === 4, 'the late job to be moved')
  stop.abort('SIGTERM')
  assert.equal((await following).code, 0)
  await Promise.all([pond.close(), old.close()])
})

test('a misspelt queue makes 3, a source that is not there 1, and neither leaves anything behind', async () => {
  const { source, target } = await filled()
  const queue = await ran(['move', source, target, '--queue', 'emials'])
  assert.deepEqual([queue.code, queue.out], [3, ''])
  assert.match(queue.err, /QueueUnknown: the source has no queue "emials"/)
  const missing = target.replace('target', 'missing')
  const file = await ran(['move', missing, target])
  assert.deepEqual([file.code, file.out], [1, ''])
  assert.match(file.err, /StoreUnavailable: there is no SQLite file .*missing-\d+\.db/)
  for (const url of [missing, target]) assert.equal(existsSync(url.slice('sqlite:'.length)), false)
})

test('bad calls make 2', async () => {
  const { source } = await filled()
  const bad: [string[], RegExp][] = [
    [[], /SOURCE is missing/],
    [[source], /TARGET is missing/],
    [[source, 'memory:', 'more'], /too many arguments: 3 instead of 2 \(SOURCE TARGET\)/],
    [[source, source], /same store/],
    [[source, 'env:NOT_SET'], /NOT_SET is not set/],
    [[source, 'env:x://hidden'], /env:NAME is not set/],
    [[source, 'memory:'], /would be lost/],
    [['memory:', source], /of this process is empty/],
    [[source, 'bullmq+redis://hidden@x'], /the source alone/],
    [[source, 'mysql://hidden@x'], /UnknownScheme/],
    [['bullmq://hidden@x', source], /UnknownScheme.*bullmq\+redis:/],
    [[source, 'memory:', '--folow'], /did you mean --follow/],
    [[source, 'memory:', '--queue', 'no name'], /--queue/],
  ]
  for (const [args, message] of bad) {
    const { code, out, err } = await ran(['move', ...args])
    assert.deepEqual([code, out], [2, ''], `${args}: ${err}`)
    assert.match(err, message)
    assert.ok(!err.includes('hidden'))
  }
})

test('several stores, with commas between, at both ends and for other verbs', async () => {
  const url = (name: string) => `sqlite:${join(folder, `${name}.db`)}`
  const [two, three] = [
    [url('two-0'), url('two-1')],
    [url('three-0'), url('three-1'), url('three-2')],
  ].map((urls) => urls.join(','))
  assert.ok(two && three)
  const pond = await Millpond.open(two)
  for (const name of ['a', 'b', 'c', 'd']) await pond.queue(name).push(1)
  await pond.close()
  assert.match((await ran(['move', two, 'env:NEW'], { NEW: three })).out, /\n4 jobs moved/)
  const stats = await ran(['stats', '--json'], { MILLPOND_STORE: three })
  assert.deepEqual([stats.code, stats.out.trim().split('\n').length], [0, 4])
  const doctor = await ran(['doctor', '--all', '--store', three])
  for (const shard of [1, 2, 3]) assert.match(doctor.out, new RegExp(`shard ${shard} of 3`))
  assert.equal((await ran(['migrate', '--dry-run', '--store', three])).code, 0)
  const [first] = three.split(',')
  const wrong = await ran(['stats', '--store', `${two.split(',')[0]},${first}`])
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /ShardMismatch/)
})

test('from BullMQ, as a process that nothing but the move keeps alive', {
  skip: missingReason('redis'),
  timeout: 60_000,
}, async (t) => {
  const prefix = `bull-${process.pid}-alive`
  const client = new Redis(serverUrl('redis') ?? '')
  after(t, () => client.disconnect())
  // As BullMQ stores one that waits.
  await client.hset(`${prefix}:emails:meta`, 'opts.maxLenEvents', 10_000)
  await client.hset(`${prefix}:emails:1`, { name: 'n', data: '{"a":1}', opts: '{}', timestamp: Date.now(), delay: 0 })
  await client.lpush(`${prefix}:emails:wait`, '1')
  after(t, () => client.unlink(`${prefix}:emails:meta`, `${prefix}:emails:id`))
  const source = `bullmq+${serverUrl('redis')}?prefix=${prefix}`
  const { code, out, err } = millpond(['move', source, `sqlite:${join(folder, 'from-bullmq.db')}`])
  assert.deepEqual([code, /\n1 job moved/.test(out)], [0, true], `${out}${err}`)
})
