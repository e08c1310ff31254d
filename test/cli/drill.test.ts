/**
 * The drill of 3 a.m.: somebody who has only `millpond --help` finds why jobs wait, raises the limit, and retries exactly the
 * 500 dead jobs of one tenant out of 10,000. It lasts over a restart of the workers, whose code wants the old limit.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { ran } from './in-process.ts'
import { onStores } from './stores.ts'

const DEAD = 10_000
const OF_TENANT = 500

onStores('the drill of 3 a.m.', async (t, url) => {
  const code = { limits: { running: 1, group: {} }, retry: { attempts: 1 } } as const
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const queue = pond.queue<number>('mails', { ...code, limits: { running: 100, group: {} } })
  await queue.pushMany(
    Array.from({ length: DEAD }, (_, at) => at),
    { each: (at) => ({ group: at % (DEAD / OF_TENANT) === 0 ? 'tenant-7' : `tenant-${at % 50}x` }) },
  )
  const failing = queue.work(
    (job) => {
      throw new Error(job.data % 2 === 0 ? 'TIMEOUT: the mail server was silent' : 'the address is wrong')
    },
    { concurrency: 100 },
  )
  await until(async () => (await queue.stats()).counts.dead === DEAD, 'all are dead')
  await failing.close()

  // A new release brought a limit that is too low. Its one job takes long.
  const released = pond.queue<number>('mails', code)
  const ends = new AbortController()
  after(t, () => ends.abort())
  const work = () =>
    released.work(
      async (_job, { signal }) => {
        await once(AbortSignal.any([signal, ends.signal]), 'abort')
      },
      { concurrency: 50 },
    )
  const worker = work()
  await released.pushMany(Array.from({ length: 30 }, (_, at) => at))
  await until(async () => (await released.stats()).counts.running === 1, 'it is at its limit')

  const call = async (...args: string[]) => {
    const { code: ended, out, err } = await ran(args, { MILLPOND_STORE: url })
    assert.equal(ended, 0, err)
    return out
  }
  assert.match(await call('--help'), /explain .*why .*wait/)
  const why = await call('explain')
  assert.match(why, /its queue runs 1 job, and its limit is 1/)
  const [, advice = ''] = /→ millpond (limits mails --running) N/.exec(why) ?? []
  await call(...advice.split(' '), '20')
  await until(async () => (await released.stats()).counts.running === 20, 'the limit is raised')

  const filter = ['--queue', 'mails', '--state', 'dead', '--error', 'TIMEOUT', '--group', 'tenant-7']
  assert.match(await call('requeue', ...filter, '--dry-run'), new RegExp(`^${OF_TENANT} jobs\\.`, 'm'))
  assert.match(await call('requeue', ...filter, '--yes'), new RegExp(`^${OF_TENANT} jobs requeued\\.`, 'm'))
  const { counts } = await released.stats()
  assert.deepEqual([counts.dead, counts.waiting], [DEAD - OF_TENANT, OF_TENANT + 10])
  assert.deepEqual(await released.jobs('dead', { group: 'tenant-7', limit: 1 }), [])

  // The workers start anew, with the old limit in their code.
  await worker.close({ timeout: 0 })
  const again = pond.queue<number>('mails', code)
  assert.deepEqual(
    (await again.settings()).find(({ name }) => name === 'running'),
    { name: 'running', value: 20, by: 'operator', code: 1 },
  )
  work()
  await until(async () => (await released.stats()).counts.running === 20, 'the limit lasts')
  assert.match(await call('limits', 'mails'), /^running +20 +operator +code wants 1$/m)
})
