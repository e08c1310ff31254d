/** What is to be done where jobs wait: more workers, or the very command that raises the limit. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Attention, attentionTo } from '../../src/cli/attention.ts'
import { Millpond } from '../../src/index.ts'
import { queueReport } from '../../src/pond/stats.ts'
import { openStore } from '../../src/stores/open.ts'
import { after } from '../support/cleaning.ts'
import { ran } from './in-process.ts'
import { freshUrl, onStores } from './stores.ts'

const BEAT = { id: 'w', queue: 'mails', host: 'h', pid: 1, slots: 2, busy: 2 }

/** A queue with three jobs, and a worker that was heard of. */
async function worked(t: TestContext, url: string, beat: object, queue: object = {}, job: object = {}) {
  const store = await openStore(url, {})
  after(t, () => store.close())
  const pond = await Millpond.open(url)
  after(t, () => pond.close({ timeout: 100 }))
  await pond.queue('mails', queue).pushMany([1, 2, 3], job)
  await store.operations.heartbeat({ workers: [{ ...BEAT, ...beat }], gone: [] })
  const explained = async (...args: string[]) => {
    const { code, out, err } = await ran(['explain', 'mails', ...args, '--store', url])
    assert.equal(code, 0, err)
    return out
  }
  return { store, pond, explained }
}

onStores(
  'with no free slot more workers or a higher concurrency is needed; with free ones something else',
  async (t, url) => {
    const { store, explained } = await worked(t, url, { busy: 0 })
    const free = await explained()
    assert.match(free, /1 worker works on it; 0 of 2 slots are busy\./)
    assert.match(free, /→ slots are free, so jobs start soon; if they do not, millpond workers mails/)
    // The store knows of running jobs before the next heartbeat does.
    await store.operations.claim({ queue: 'mails', worker: 'w', limit: 2, lease: 60_000 })
    const full = await explained()
    assert.match(full, /all 2 slots are busy: more workers, or a higher concurrency of theirs, is needed\./)
    assert.match(full, /→ start more workers, or raise their concurrency; millpond plan --queue mails/)
    assert.doesNotMatch(full, /slots are free/)
  },
)

test('a limit below the slots holds jobs back also in the moment in which one has ended', async (t) => {
  const { explained } = await worked(t, freshUrl(t, 'sqlite'), { busy: 0 }, { limits: { running: 1 } })
  const told = await explained()
  assert.match(told, /The limit of the queue lets 1 job run at once, and so not all slots can be busy\./)
  assert.match(told, /→ millpond limits mails --running N/)
  assert.doesNotMatch(told, /slots are free/)
})

test('free slots that are kept for urgent jobs are no free slots for others', async (t) => {
  const lanes = [{ minPriority: 8, reserve: 1 }]
  const { explained } = await worked(t, freshUrl(t, 'sqlite'), { busy: 1, lanes })
  const told = await explained()
  assert.match(told, /Slots that are kept for urgent jobs: 1 of 2 for priority >= 8\./)
  assert.match(told, /→ the slots that are free are kept for urgent jobs; start more workers/)
})

onStores('a rate and the limits of groups: the command has the right option', async (t, url) => {
  const { store, pond, explained } = await worked(
    t,
    url,
    { slots: 10 },
    { limits: { group: { running: 1 } } },
    { group: 'tenant 7' },
  )
  await store.operations.claim({ queue: 'mails', worker: 'w', limit: 1, lease: 60_000 })
  const ofAll = await explained()
  assert.match(ofAll, /^→ millpond limits mails --group 'tenant 7' --running N$/m)
  assert.match(ofAll, /^→ millpond limits mails --group-running N, for every group$/m)
  const stats = async () => (await ran(['stats', '--store', url])).out
  assert.match(
    await stats(),
    /mails: 1 group is at its limit.*→ millpond limits mails --group-running N, or for one millpond limits mails --group NAME --running N;/,
  )
  await pond.queue('mails').limitGroup('tenant 7', { running: 1 })
  const own = await explained()
  assert.match(own, /^→ millpond limits mails --group 'tenant 7' --running N$/m)
  assert.doesNotMatch(own, /for every group/)

  await pond.queue('mails').override({ limits: { rate: '1/h', group: { running: null } } })
  await pond.queue('mails').limitGroup('tenant 7', { running: 9 })
  await store.operations.claim({ queue: 'mails', worker: 'w', limit: 2, lease: 60_000 })
  assert.match(await explained(), /^→ millpond limits mails --rate N\/s$/m)
  assert.match(
    await stats(),
    /mails: its rate is 1\/h: the next job may start in .* → millpond limits mails --rate N\/s/,
  )
})

test('stats, top and doctor: what to do, by what holds the jobs back', () => {
  const none = queueReport('mails')
  const counts = { ...none.counts, waiting: 50, running: 20 }
  const worker = { queue: 'mails', slots: 10, busy: 10, silence: 0 }
  const told = (more: object, workers = [worker, worker]): Attention[] =>
    attentionTo({ ...none, counts, lastClaim: 0, oldestWaiting: 60_000, ...more }, workers)
  const lines = (...all: Parameters<typeof told>) => told(...all).map(({ kind, text, action }) => [kind, text, action])
  assert.deepEqual(lines({}), [
    [
      'slots',
      'all 20 slots are busy, and 50 jobs wait',
      'start more workers, or raise their concurrency; millpond plan --queue mails tells how many slots it needs',
    ],
  ])
  const idle = { ...worker, slots: 30 }
  for (const [more, workers] of [
    [{}, [idle]],
    [{ paused: true }, undefined],
    [{ oldestWaiting: 500 }, undefined],
    [{ counts: { ...counts, waiting: 0 } }, undefined],
    [{}, []],
  ] as const) {
    assert.ok(told(more, workers && [...workers]).every(({ kind }) => kind !== 'slots'))
  }
  const silent = { ...worker, silence: 31_000 }
  assert.equal(told({}, [silent])[0]?.text, 'its only worker is silent since 31 s')
  assert.equal(
    told({}, [silent, { ...silent, silence: 59_999 }, idle])[0]?.text,
    '2 of 3 workers are silent since 59 s',
  )
  assert.deepEqual(told({}, [{ ...worker, silence: 30_000, slots: 30 }]), [])

  const rate = { count: 5, per: 10_000, burst: null }
  const limits = { running: 20, rate, group: { running: null, rate } }
  assert.deepEqual(lines({ limits, nextStart: null }), [
    ['queueLimit', 'it runs as many jobs as it may, 20', 'millpond limits mails --running N'],
  ])
  assert.deepEqual(lines({ limits, nextStart: 1500 }), [
    ['queueRate', 'its rate is 5/10s: the next job may start in 2s', 'millpond limits mails --rate N/s'],
  ])
  assert.match(lines({ limits: null, nextStart: 1500 })[0]?.join() ?? '', /a handler asked for a pause.*ends by itself/)
  assert.deepEqual(lines({ limits, groupsAtLimit: 2, groupsHeld: 1 }, [idle]), [
    [
      'groupLimit',
      '2 groups are at their limit, and jobs of them wait',
      'millpond limits mails --group NAME --running N; millpond explain mails names them',
    ],
    [
      'groupRate',
      '1 group waits for its rate or a pause, and jobs of it wait',
      'millpond limits mails --group-rate N/s, or for one millpond limits mails --group NAME --rate N/s; millpond limits mails lists them',
    ],
  ])
})
