/** Verbs that look at queues and change them, on every store. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { after } from '../support/cleaning.ts'
import { ran } from './in-process.ts'
import { freshUrl, onStores } from './stores.ts'

const lines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** The command on one store. */
const commandOn = (url: string) => {
  const call = (...args: string[]) => ran(args, { MILLPOND_STORE: url })
  const ok = async (...args: string[]) => {
    const { code, out, err } = await call(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${out}${err}`)
    return out
  }
  const json = async (...args: string[]) => lines(await ok(...args, '--json'))
  return { call, ok, json }
}

onStores('push, jobs, job, update, cancel, requeue, remove by id', async (_t, url) => {
  const pond = await Millpond.open(url)
  await pond.close()
  const { call, ok, json } = commandOn(url)
  const unknown = await call('push', 'mails', '{"to":"ada"}')
  assert.deepEqual([unknown.code, /has no queue "mails"/.test(unknown.err)], [3, true])
  const [pushed] = await json('push', 'mails', '{"to":"ada"}', '--new', '--key', 'k', '--group', 'g', '--priority', '7')
  const id = String(pushed?.id)
  assert.equal((await json('push', 'mails', '{"to":"bob"}', '--key', 'k'))[0]?.existing, true)
  const [listed] = await json('jobs', 'mails', '--state', 'waiting', '--key', 'k')
  assert.deepEqual([listed?.id, listed?.priority, listed?.group, 'data' in (listed ?? {})], [id, 7, 'g', false])
  assert.deepEqual((await json('jobs', 'mails', '--payloads'))[0]?.data, { to: 'ada' })
  assert.match(
    await ok('jobs', 'mails'),
    new RegExp(`^id +state +tries +age +prio +group +key\n${id} +waiting +0/10 .* 7 +g +k$`, 'm'),
  )
  assert.match(await ok('job', id, '--payloads'), /^data +\{"to":"ada"\}$/m)
  assert.doesNotMatch(await ok('job', id), /ada/)
  assert.match(await ok('update', id, '--priority', '2', '--data', '{"to":"eve"}'), /^1 job changed\.$/m)
  assert.deepEqual((await json('job', id, '--payloads'))[0]?.data, { to: 'eve' })
  assert.match(await ok('cancel', id), /^1 job cancelled\.$/m)
  const again = await call('cancel', id, '00000000-0000-7000-8000-000000000000')
  assert.deepEqual([again.code, /is not known/.test(again.err)], [1, true])
  assert.match(await ok('requeue', id), /^1 job requeued\.$/m)
  // A job that runs by now must not be cancelled by this.
  for (const part of [
    ['--state', 'waiting'],
    ['--group', 'g'],
    ['--limit', '1'],
    ['--after', '1~waiting'],
  ]) {
    const { code, err } = await call('cancel', id, ...part)
    assert.deepEqual([code, /go with --queue, and not with IDs/.test(err)], [2, true], err)
  }
  for (const [given, why] of [
    [id, /is waiting, neither dead nor cancelled/],
    ['00000000-0000-7000-8000-000000000000', /is not known/],
  ] as const) {
    const refused = await call('requeue', given)
    assert.deepEqual([refused.code, why.test(refused.err)], [1, true], refused.err)
  }
  assert.match(await ok('remove', id), /^1 job removed\.$/m)
  const gone = await call('job', id)
  assert.deepEqual([gone.code, /JobUnknown/.test(gone.err)], [3, true])
})

onStores('jobs that wait for others: push --after, job, explain, cancel', async (_t, url) => {
  const pond = await Millpond.open(url)
  await pond.close()
  const { call, ok, json } = commandOn(url)
  const push = async (...args: string[]) => String((await json('push', 'mails', '1', '--new', ...args))[0]?.id)
  const [one, two] = [await push(), await push()]
  const child = await push('--after', one, '--after', two, '--on-dead', 'run')
  const inside = await push('--part-of', one)
  const [shown] = await json('job', child)
  assert.deepEqual([shown?.state, shown?.waitsFor, shown?.onDead], ['blocked', 3, 'run'])
  assert.deepEqual([shown?.parents, shown?.children], [[one, two, inside].toSorted(), []])
  const text = await ok('job', child)
  assert.match(text, /^state +blocked, waits for 3 jobs$/m)
  assert.match(text, new RegExp(`^parent +${one} +mails, waiting$`, 'm'))
  assert.match(await ok('job', two), new RegExp(`^child +${child} +mails, blocked$`, 'm'))
  assert.match(await ok('explain', child), /3 jobs have not ended.*→ millpond explain [0-9a-f-]{36}\n$/s)
  assert.match(await ok('jobs', 'mails', '--state', 'blocked'), new RegExp(`^${child} +blocked`, 'm'))
  assert.equal((await call('push', 'mails', '1', '--after', 'first')).code, 2)
  assert.equal((await call('push', 'mails', '1', '--on-dead', 'wait', '--after', one)).code, 2)
  const orphan = await call('push', 'mails', '1', '--after', '00000000-0000-7000-8000-000000000000')
  assert.match(orphan.err, /ParentUnknown/)
  assert.match(await ok('cancel', '--queue', 'mails', '--state', 'blocked', '--yes'), /^1 job cancelled\.$/m)
})

onStores('stats, pause, explain, resume, workers, limits', async (_t, url) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue('mails', { limits: { running: 3, group: { running: 2 } } })
  await queue.pushMany([1, 2, 3, 4], { group: 'tenant-7' })
  const { call, ok, json } = commandOn(url)
  assert.equal((await json('stats'))[0]?.queue, 'mails')
  assert.match(await ok('stats'), /^queue +blocked +scheduled +waiting[^\n]*\nmails +0 +0 +4 /m)
  assert.match(await ok('stats', 'mails'), /^pushed +4$/m)
  assert.match(await ok('explain'), /no worker has ever asked/)
  assert.match(await ok('pause', 'mails'), /^mails is paused\.$/m)
  assert.match(await ok('explain', 'mails'), /its queue is paused.*→ millpond resume mails/s)
  await ok('resume', 'mails')

  const blocked = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  let count = 0
  const worker = queue.work(
    async () => {
      if (++count === 2) started.resolve()
      await blocked.promise
    },
    { concurrency: 10 },
  )
  await started.promise
  const told = await ok('explain', 'mails')
  assert.match(told, /its group tenant-7 runs 2 jobs, and its limit is 2/)
  assert.match(told, /→ millpond limits mails --group tenant-7 --running N/)
  const [known] = await json('workers', 'mails')
  assert.deepEqual([known?.queue, known?.slots, known?.pid], ['mails', 10, process.pid])
  assert.match(await ok('workers'), /^mails .* \d+\/10 /m)

  await ok(
    'limits',
    'mails',
    '--running',
    '50',
    '--rate',
    '100/s',
    '--capacity',
    '1000',
    '--lease',
    '1m',
    '--attempts',
    '7',
  )
  const shown = await ok('limits', 'mails')
  assert.match(shown, /^running +50 +operator +code wants 3$/m)
  assert.match(shown, /^rate +100\/s +operator/m)
  assert.match(shown, /^lease +1m +operator/m)
  await ok('limits', 'mails', '--group', 'tenant-7', '--running', '3')
  await ok('limits', 'mails', '--group', 'tenant-7', '--weight', '4')
  assert.match(await ok('limits', 'mails', '--group', 'tenant-7'), /^tenant-7 +\d +\d +3 +as the queue +4/m)
  const dry = await ok('limits', 'mails', '--clear', 'running', '--clear', 'rate', '--lease', '2m', '--dry-run')
  assert.match(dry, /^It would change lease 1m → 2m, running 50 → 3, rate .+ → none\.\nNothing was changed\.$/m)
  assert.match(dry, /^running +50 +operator/m)
  await ok('limits', 'mails', '--clear', 'running', '--clear', 'rate')
  assert.match(await ok('limits', 'mails'), /^running +3 +code$/m)
  await ok('limits', 'mails', '--group', 'tenant-7', '--clear', 'all', '--dry-run')
  assert.match(await ok('limits', 'mails', '--group', 'tenant-7'), /^tenant-7 +\d +\d +3 /m)
  const slip = await call('limits', 'mails', '--clear', 'runing')
  assert.deepEqual([slip.code, /did you mean running\?/.test(slip.err)], [2, true])
  blocked.resolve()
  await worker.close()
  await pond.close()
})

onStores('of groups that do not take turns nothing is claimed', async (_t, url) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue<number>('mails')
  await queue.pushMany([1, 2, 3], { group: 'tenant-7' })
  const { call, ok } = commandOn(url)
  const none = await call('requeue', '--queue', 'mails', '--group', 'tenant-7')
  assert.doesNotMatch(none.err, /no job of a group/)
  const shown = await ok('limits', 'mails', '--group', 'tenant-7')
  assert.doesNotMatch(shown, /has no jobs/)
  assert.match(shown, /groups of mails do not take turns/)
  await ok('limits', 'mails', '--group-running', '2')
  assert.match(await ok('limits', 'mails', '--group', 'tenant-7'), /^tenant-7 +3 /m)
  assert.match((await call('requeue', '--queue', 'mails', '--group', 'tenant-8')).err, /no job of a group "tenant-8"/)
  await pond.close()
})

onStores('limits that remove finished jobs say how many, and need --yes', async (_t, url) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue<number>('mails')
  const ids = (await queue.pushMany([1, 2, 3])).map(({ id }) => id)
  for (const id of ids) await pond.cancel(id)
  const { call, ok } = commandOn(url)
  const keepOf = async () => (await queue.settings()).find(({ name }) => name === 'keepDead')?.value
  for (const given of ['0s', '1h']) {
    const refused = await call('limits', 'mails', '--keep-dead', given, '--running', '9')
    assert.deepEqual([refused.code, /give --yes/.test(refused.err)], [3, true], refused.err)
    assert.match(refused.err, /keep-dead 7d → (0ms|1h) removes .*3 dead and cancelled jobs/)
  }
  assert.match(await ok('limits', 'mails', '--keep-dead', '0s', '--dry-run'), /removes .*3 dead and cancelled jobs/)
  assert.equal(await keepOf(), 7 * 86_400_000)
  assert.equal((await queue.settings()).find(({ name }) => name === 'running')?.value, null)
  await ok('limits', 'mails', '--keep-dead', '30d')
  const cleared = await call('limits', 'mails', '--clear', 'all')
  assert.deepEqual([cleared.code, await keepOf()], [3, 30 * 86_400_000])
  await ok('limits', 'mails', '--keep-dead', '1h', '--yes')
  assert.equal(await keepOf(), 3_600_000)
  await pond.close()
})

onStores('requeue, cancel, remove and promote of all that pass a filter', async (_t, url) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue<number>('mails', { retry: { attempts: 1 } })
  await queue.pushMany(
    Array.from({ length: 60 }, (_, at) => at),
    { each: (at) => ({ group: at % 3 === 0 ? 'tenant-7' : 'other' }) },
  )
  const worker = queue.work(
    (job) => {
      throw new Error(job.data % 2 === 0 ? 'TIMEOUT of the mail server' : 'refused')
    },
    { concurrency: 20 },
  )
  const { call, ok, json } = commandOn(url)
  while ((await queue.stats()).counts.dead < 60) await new Promise((resolve) => setTimeout(resolve, 5))
  await worker.close()
  const filter = ['--queue', 'mails', '--state', 'dead', '--error', 'TIMEOUT', '--group', 'tenant-7']
  const preview = await ok('requeue', ...filter, '--dry-run')
  assert.match(preview, /HandlerFailed: TIMEOUT of the mail server$/m)
  assert.match(preview, /^10 jobs\. Nothing was changed\.$/m)
  assert.equal((await queue.stats()).counts.waiting, 0)
  for (const [given, hint] of [
    [['--error', 'timeout'], /--error is matched as it is written: case counts/],
    [['--error-code', 'TIMEOUT'], /--error-code is matched as a whole.* is for --error/],
    [['--group', 'tenant-77'], /--group is matched as a whole/],
  ] as const) {
    for (const verb of [['requeue', '--queue'], ['requeue', '--dry-run', '--queue'], ['jobs']]) {
      const { code, err } = await call(...verb, 'mails', ...given)
      assert.deepEqual([code, hint.test(err)], [0, true], `${verb} ${given}: ${err}`)
    }
  }
  for (const verb of ['requeue', 'promote', 'update'] as const) {
    const options = { requeue: [], promote: [], update: ['--priority', '3'] }[verb]
    const state = verb === 'requeue' ? 'dead' : 'scheduled'
    if (verb !== 'requeue') await queue.push(1, { delay: '1d' })
    const filters = ['--queue', 'mails', ...(verb === 'promote' ? [] : ['--state', state])]
    const shown = await call(verb, ...filters, ...options)
    assert.deepEqual([shown.code, /give --yes/.test(shown.err)], [3, true], `${verb}: ${shown.err}`)
    assert.match(shown.out, /^\d+ jobs?\..* Nothing was changed\.$/m)
  }
  const after = await queue.stats()
  assert.deepEqual([after.counts.dead, after.counts.scheduled, after.counts.waiting], [60, 2, 0])
  await ok('remove', '--queue', 'mails', '--state', 'scheduled', '--yes')
  assert.match(await ok('requeue', ...filter, '--yes'), /^10 jobs requeued\.$/m)
  assert.deepEqual((await json('jobs', 'mails', '--state', 'waiting')).length, 10)
  const refused = await call('cancel', '--queue', 'mails', '--state', 'waiting')
  assert.deepEqual([refused.code, /give --yes/.test(refused.err)], [3, true])
  assert.equal((await queue.stats()).counts.waiting, 10)
  assert.match(await ok('cancel', '--queue', 'mails', '--state', 'waiting', '--yes'), /^10 jobs cancelled\.$/m)
  assert.match(
    await ok('remove', '--queue', 'mails', '--state', 'dead', '--limit', '20', '--yes'),
    /^20 jobs removed\.$/m,
  )
  await queue.push(1, { delay: '1d' })
  assert.match(await ok('promote', '--queue', 'mails', '--yes'), /^1 job wait/m)
  assert.equal((await queue.stats()).counts.waiting, 1)
  const whole = await call('remove', '--queue', 'mails', '--whole-queue')
  assert.equal(whole.code, 3)
  // A filter beside it is a slip: it must not be passed over.
  for (const part of [
    ['--group', 'tenant-7'],
    ['--error-code', 'TimedOut'],
    ['--limit', '1'],
    ['--state', 'dead'],
  ]) {
    const { code, err } = await call('remove', '--queue', 'mails', '--whole-queue', '--yes', ...part)
    assert.deepEqual([code, err.includes(`leave out it or ${part[0]}`)], [2, true], err)
  }
  assert.match((await call('remove', '--whole-queue', '--yes')).err, /--whole-queue needs --queue NAME/)
  assert.match(await ok('remove', '--queue', 'mails', '--whole-queue', '--yes'), /^mails and \d+ jobs removed\.$/m)
  await pond.close()
})

test('a file that is not there, memory, and a misspelt queue or verb make nothing', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const missing = await ran(['stats', '--store', url])
  assert.deepEqual([missing.code, /there is no SQLite file/.test(missing.err)], [1, true])
  const memory = await ran(['stats', '--store', 'memory:'])
  assert.deepEqual([memory.code, /memory: of this process is empty/.test(memory.err)], [2, true])
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  for (const verb of ['pause', 'resume', 'limits', 'jobs', 'explain', 'stats', 'workers']) {
    const { code, err } = await ran([verb, 'mials', '--store', url])
    assert.deepEqual([code, /has no queue "mials"; did you mean mails\?/.test(err)], [3, true], `${verb}: ${err}`)
  }
  for (const [given, meant] of [
    ...[['requeu', 'requeue'] as const, ['retry', 'requeue'] as const],
    ...[['rm', 'remove'] as const, ['delete', 'remove'] as const, ['kill', 'cancel'] as const],
  ]) {
    assert.match((await ran([given])).err, new RegExp(`did you mean ${meant}\\?`))
  }
})

test('jobs run, and no worker is left: this is told before limits', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  await pond.queue('mails', { limits: { running: 2 } }).pushMany([1, 2, 3])
  const store = await openStore(url, {})
  after(t, () => store.close())
  await store.operations.claim({ queue: 'mails', worker: 'w', limit: 9, lease: 600_000 })
  const { ok } = commandOn(url)
  const short = /mails: 2 jobs run, but no worker was heard of for /
  const full =
    /No worker was heard of since 1970-[^;]*; 2 running jobs are those of workers that are gone: they come back/
  assert.doesNotMatch(await ok('stats'), short)
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec('update millpond_queues set heard_at = 1000')
  db.close()
  const [waiting] = await pond.queue('mails').jobs('waiting')
  const answers = [ok('explain', 'mails'), ok('explain', waiting?.id ?? ''), ok('stats'), ok('top', '--once')]
  for (const told of [...(await Promise.all(answers)), (await commandOn(url).call('doctor')).out]) {
    const [workers, limit] = [/→ start workers/.exec(told), /→ millpond limits mails --running N/.exec(told)]
    assert.match(told, told.includes('Job ') ? full : short)
    assert.ok(workers !== null && (limit === null || workers.index < limit.index), told)
  }
  const seen = { id: 'w', queue: 'mails', host: 'h', pid: 1, slots: 2, busy: 2 }
  await store.operations.heartbeat({ workers: [seen], gone: [] })
  assert.doesNotMatch(await ok('stats'), short)
  await pond.close()
})

test('what comes from jobs cannot drive the terminal', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  await pond.queue('q').push(1, { key: '\x1b]0;owned\x07\u202ekey', group: 'a\nb' })
  await pond.close()
  const { out } = await ran(['jobs', 'q', '--store', url])
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
  assert.doesNotMatch(out.replaceAll('\n', ''), /[\u0000-\u001f\u007f-\u009f\u202e]/)
  assert.equal(out.split('\n').length, 3)
})
