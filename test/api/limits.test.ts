/** Limits, rates and groups as a caller meets them; what exactly a store does is in the vectors and the model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Context, Millpond, QueueLimitOptions, RateOption } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { diary, first, gate, inState, numbers, onEachStore, refused, withoutLimits } from './suite.ts'

/** Runs all waiting jobs, one at a time, and gives their data in the order of their starts. */
async function order(pond: Millpond, name: string, count: number): Promise<unknown[]> {
  const started: unknown[] = []
  const worker = pond.queue(name).work((job) => void started.push(job.data), { concurrency: 1 })
  await until(() => started.length === count, `${count} jobs to start`)
  await worker.close()
  return started
}

onEachStore('limits', {
  'no more jobs run than the queue allows, over all workers': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { limits: { running: 3 } })
    let running = 0
    let most = 0
    let done = 0
    const handler = async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      done++
    }
    for (const _ of numbers(3)) queue.work(handler, { concurrency: 5 })
    await queue.pushMany(numbers(100))
    await until(() => done === 100, 'all jobs to be done')
    assert.equal(most, 3)
  },

  'a limit that is raised lets waiting jobs start at once; a freed slot wakes another worker': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { limits: { running: 1 } })
    const { opened, open: letGo } = gate()
    const started: number[] = []
    const handler = async (job: { data: number }) => {
      started.push(job.data)
      if (job.data < 2) await opened
    }
    queue.work(handler, { concurrency: 2 })
    queue.work(handler, { concurrency: 2 })
    await queue.pushMany(numbers(4))
    await until(() => started.length === 1, 'the first job')
    pond.queue('q', { limits: { running: 2 } })
    await until(() => started.length === 2, 'the second job')
    letGo()
    await until(() => started.length === 4, 'all jobs')
  },

  'starts keep to the rate': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { limits: { rate: { count: 1, per: 30, burst: 1 } } })
    const due: number[] = []
    queue.work((job) => void due.push(job.data))
    await queue.pushMany(numbers(5))
    await until(() => due.length === 5, 'all jobs')
    const infos = await queue.jobs('done')
    const starts = infos.map(({ startedAt }) => startedAt?.getTime() ?? 0).sort((a, b) => a - b)
    for (const [index, at] of starts.entries()) assert.ok(index === 0 || at - (starts[index - 1] ?? 0) >= 30)
  },

  'groups take turns by weight': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { limits: { group: {} } })
    await queue.limitGroup('b', { weight: 2 })
    await queue.pushMany(
      numbers(3).map((n) => `a${n}`),
      { group: 'a' },
    )
    await queue.pushMany(
      numbers(3).map((n) => `b${n}`),
      { group: 'b' },
    )
    assert.deepEqual(await order(pond, 'q', 6), ['a0', 'b0', 'b1', 'a1', 'b2', 'a2'])
  },

  'batches of one group are full, although many groups wait': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { limits: { group: {} } })
    // Job after job of another group, so that no claim finds those of one group together by chance.
    for (const n of numbers(5)) {
      await Promise.all(numbers(40).map((group) => queue.push(n, { group: `g${group}` })))
    }
    const batches: string[] = []
    queue.work(
      (jobs) => {
        batches.push(jobs.map(({ group, data }) => `${group}:${data}`).join(' '))
        return undefined
      },
      { concurrency: 2, batch: { max: 5, sameGroup: true } },
    )
    await until(async () => (await queue.stats()).counts.done === 200)
    const expected = numbers(40).map((group) =>
      numbers(5)
        .map((n) => `g${group}:${n}`)
        .join(' '),
    )
    assert.deepEqual(batches.toSorted(), expected.toSorted())
  },

  'a group at its limit holds nobody up, and is listed': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { limits: { group: { running: 1 } } })
    await queue.limitGroup('b', { running: 2, rate: '100/s' })
    const { opened, open: letGo } = gate()
    const started: string[] = []
    queue.work(
      async (job) => {
        started.push(job.data)
        await opened
      },
      { concurrency: 10 },
    )
    for (const group of ['a', 'b', 'c']) await queue.pushMany([`${group}1`, `${group}2`, `${group}3`], { group })
    await until(() => started.length === 4, 'four jobs')
    assert.deepEqual(started.toSorted(), ['a1', 'b1', 'b2', 'c1'])
    const rate = { count: 100, per: 1000, burst: null }
    assert.deepEqual(await queue.groups(), [
      { group: 'a', limits: null, waiting: 2, running: 1, nextStart: null },
      { group: 'b', limits: { running: 2, rate, weight: 1 }, waiting: 1, running: 2, nextStart: null },
      { group: 'c', limits: null, waiting: 2, running: 1, nextStart: null },
    ])
    assert.deepEqual(await queue.groups({ limit: 1, after: 'b' }).then((page) => page.map(({ group }) => group)), ['c'])
    const { limits, nextStart, groupsAtLimit, groupsHeld } = await queue.stats()
    assert.deepEqual(limits, { running: null, rate: null, group: { running: 1, rate: null } })
    assert.deepEqual({ nextStart, groupsAtLimit, groupsHeld }, { nextStart: 0, groupsAtLimit: 3, groupsHeld: 0 })
    letGo()
    await until(() => started.length === 9, 'all jobs')
  },

  'rateLimited pauses the group for all workers, and counts as no attempt': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<string>('q', { limits: { group: {} }, retry: { attempts: 1 } })
    const started: string[] = []
    const handler = (job: { data: string; attempt: number }, ctx: Context) => {
      const again = started.includes('a1')
      started.push(`${job.data}${job.attempt}`)
      return job.data === 'a' && !again ? ctx.rateLimited(60) : undefined
    }
    const [limited] = await queue.pushMany(['a', 'b'], { group: 'x' })
    await queue.push('c', { group: 'y' })
    for (const _ of numbers(2)) queue.work(handler, { concurrency: 1 })
    await until(() => started.length === 4, 'all jobs')
    assert.deepEqual(started.toSorted(), ['a1', 'a1', 'b1', 'c1'])
    const { error, startedAt } = await inState(pond, first([limited])?.id ?? '', 'done')
    assert.equal(error, null)
    const [told] = entries.filter(({ name }) => name === 'rateLimited')
    assert.deepEqual(told?.event, { queue: 'q', id: limited?.id, attempt: 1, priority: 4, pause: 60 })
    assert.ok(startedAt instanceof Date)
  },

  'a batch that is rate limited waits again as a whole, and pauses the groups of its jobs': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { limits: { group: {} }, retry: { attempts: 1 } })
    const batches: string[][] = []
    await queue.pushMany(['a1', 'a2'], { group: 'a' })
    await queue.push('b1', { group: 'b' })
    queue.work(
      (jobs, ctx) => {
        batches.push(jobs.map(({ data, attempt }) => `${data}${attempt}`).toSorted())
        return batches.length === 1 ? ctx.rateLimited(50) : undefined
      },
      { batch: { max: 10 } },
    )
    await until(() => batches.length > 1 && batches.slice(1).flat().length === 3, 'all jobs to run once more')
    assert.deepEqual(batches[0], ['a11', 'a21', 'b11'])
    assert.deepEqual(batches.slice(1).flat().toSorted(), ['a11', 'a21', 'b11'])
  },

  'explain says what a job waits for': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { limits: { running: 2, group: { running: 1 } } })
    const { opened, open: letGo } = gate()
    const a = await queue.push('a', { group: 'x' })
    const b = await queue.push('b', { group: 'x' })
    const c = await queue.push('c', { group: 'x' })
    const d = await queue.push('d', { delay: '1h' })
    const kinds = async (id: string) => (await pond.explain(id))?.reasons.map(({ kind }) => kind)
    assert.deepEqual(await kinds(a.id), ['noWorker'])
    assert.match((await pond.explain(a.id))?.text ?? '', /waits: no worker has ever asked its queue for jobs\.$/)
    assert.deepEqual(await kinds(b.id), ['noWorker', 'behind'])
    assert.deepEqual(await kinds(d.id), ['due'])
    await queue.pause()
    assert.deepEqual(await kinds(b.id), ['noWorker', 'paused', 'behind'])
    await queue.resume()
    queue.work(() => opened)
    await inState(pond, a.id, 'running')
    const told = await pond.explain(c.id)
    assert.deepEqual(told?.reasons, [
      { kind: 'groupLimit', group: 'x', running: 1, limit: 1 },
      { kind: 'behind', jobs: 1, more: false },
    ])
    assert.match(told?.text ?? '', /waits: its group x runs 1 job, and its limit is 1; 1 job comes before it\.$/)
    assert.match((await pond.explain(a.id))?.text ?? '', /runs on worker/)
    const e = await queue.push('e', { group: 'y' })
    await inState(pond, e.id, 'running')
    assert.deepEqual(await kinds(c.id), ['queueLimit', 'groupLimit', 'behind'])
    letGo()
    await inState(pond, c.id, 'done')
    assert.match((await pond.explain(c.id))?.text ?? '', /is done\.$/)
    assert.equal(await pond.explain('019b76da-a800-7000-8000-000000000001'), undefined)
  },

  'a worker that waits for jobs is known, to explain too': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    const first = await queue.push('first')
    const worker = queue.work(() => {})
    await inState(pond, first.id, 'done')
    await until(async () => (await queue.stats()).lastClaim !== null, 'the note of a claim')
    await worker.close()
    const { id } = await queue.push('second')
    const told = await pond.explain(id)
    assert.deepEqual(
      [told?.reasons, told?.text],
      [[], `Job ${id} waits for a free worker; nothing else holds it back.`],
    )
  },

  'a queue without limits that is paused by rateLimited: stats and explain tell': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    const { id } = await queue.push('a')
    const before = await queue.stats()
    assert.deepEqual([before.limits, before.nextStart], [null, 0])
    queue.work((_, ctx) => ctx.rateLimited('1h'), { concurrency: 1 })
    await until(async () => (await queue.stats()).nextStart !== 0, 'the pause')
    const { limits, nextStart, paused, groupsHeld } = await queue.stats()
    assert.deepEqual({ limits, paused, groupsHeld }, { limits: null, paused: false, groupsHeld: 0 })
    assert.ok(nextStart !== null && nextStart > 3_000_000 && nextStart <= 3_600_000, String(nextStart))
    const told = await pond.explain(id)
    assert.deepEqual(
      told?.reasons.map(({ kind }) => kind),
      ['queueRate'],
    )
    assert.match(told?.text ?? '', /waits: the rate or a pause of its queue allows the next start at 20/)
  },

  'bad limits are refused when they are given': async ({ open }) => {
    const pond = await open()
    const bad: [unknown, RegExp][] = [
      [{ running: 0 }, /running/],
      [{ running: 1.5 }, /running/],
      [{ rate: '0/s' }, /count/],
      [{ rate: '10/fortnight' }, /rate/],
      [{ rate: { count: 1, per: '1s', burst: 0 } }, /burst/],
      [{ group: { running: -1 } }, /running/],
      [{ running: 2 ** 31 }, /running/],
      [{ group: 5 }, /limits\.group/],
      [{ group: { weight: 1 } }, /weight/],
      [{ speed: 1 }, /speed/],
    ]
    for (const [limits, message] of bad) {
      await refused(() => pond.queue('q', { limits: limits as QueueLimitOptions }), 'InvalidOption', message)
    }
    const most = pond.queue('most', { limits: { running: 2 ** 31 - 1 } })
    await most.push('a')
    assert.equal((await most.stats()).limits?.running, 2 ** 31 - 1)
    const queue = pond.queue('q', { limits: { rate: { count: 10, per: '1s', burst: 3 } } })
    await refused(queue.push('a', { cost: 4 }), 'InvalidOption', /burst.*3/)
    await refused(queue.push('a', { cost: 0 }), 'InvalidOption', /cost/)
    await queue.push('a', { cost: 3 })
    await refused(queue.limitGroup('a', { weight: 0 }), 'InvalidOption', /weight/)
    await refused(queue.limitGroup('a', { rate: 'often' as RateOption }), 'InvalidOption', /rate/)
    await refused(queue.limitGroup('a', undefined as never), 'InvalidOption', /or null to take away/)
    await refused(queue.limitGroup('a\0', { weight: 2 }), 'InvalidName')
    await refused(queue.groups({ limit: 0 }), 'InvalidOption', /limit/)
  },
})

test('a store without limits refuses them', () =>
  withoutLimits(async (pond) => {
    await refused(() => pond.queue('q', { limits: { running: 1 } }), 'NotSupported', /limits/)
    const queue = pond.queue('q')
    const { id } = await queue.push('a')
    await refused(queue.push('a', { cost: 2 }), 'NotSupported', /cost/)
    await refused(queue.limitGroup('a', { weight: 2 }), 'NotSupported', /limitGroup/)
    await refused(queue.groups(), 'NotSupported', /groups/)
    queue.work((_, ctx) => ctx.rateLimited('1s'), { concurrency: 1 })
    await until(async () => (await pond.job(id))?.error?.code === 'NotSupported', 'the job to fail')
  }))
