/** A store with what is hard to draw: long names, an error without an end, a graph with 30 parents, millions of jobs. */

import { alerts } from '../../src/alerts/index.ts'
import type { Millpond } from '../../src/index.ts'
import { actionDone } from '../../src/pond/actions.ts'
import { internalsOf } from '../../src/pond/internals.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { until } from '../support/until.ts'

export const LONG = 'billing.eu-central-1/invoices:monthly-statements_and-reminders'
const UNBROKEN = 'x'.repeat(90)
export const PARENTS = 30
const GROUPS = 40
/** As a worker of this machine, but of no process. */
const SILENT = 'ip-10-20-30-40.eu-central-1.compute.internal'

export interface Scene {
  dead: string
  running: string
  undecodable: string
  whole: string
  /** One of its parents. */
  part: string
  waiting: string
  scheduled: string
}

const long = (text: string, times: number) => Array.from({ length: times }, (_, n) => `${text} ${n}`).join('\n    ')

/** @param release ends the job that runs, when the test is over */
export async function extremes(pond: Millpond, release: Promise<void>): Promise<Scene> {
  const { operations } = internalsOf(pond).store
  pond.on('dead', () => {})
  pond.on('failed', () => {})
  const bills = pond.queue(LONG, {
    capacity: 50,
    retry: { attempts: 1 },
    limits: { running: 2, rate: '100/s', group: { running: 1, rate: '5/s' } },
  })
  const fails = { group: `tenant-${UNBROKEN}`, key: `invoice/${UNBROKEN}` }
  const { id: dead } = await bills.push(
    { fails: true, customer: { note: UNBROKEN.repeat(4) }, reference: 9007199254740993n },
    fails,
  )
  const { id: running } = await bills.push({ fails: false }, { group: 'tenant-1' })
  const worker = bills.work(
    async (job, ctx) => {
      for (let n = 0; n < 30; n++)
        ctx.log(`line ${n} ${n === 7 ? UNBROKEN.repeat(3) : ''}`, { step: n, at: { deep: [n] } })
      ctx.progress({ percent: 41, note: 'a third of the statements' })
      if (!(job.data as { fails: boolean }).fails) return release
      const error = new TypeError(`connect ETIMEDOUT ${UNBROKEN.repeat(4)}`)
      error.stack = `${error.name}: ${error.message}\n    ${long('at Socket.connect (node:net:1187:16) frame', 60)}`
      throw error
    },
    { concurrency: 2 },
  )
  await until(async () => (await pond.job(dead))?.state === 'dead', 'the job to be dead')
  await until(async () => (await pond.job(running))?.progress != null, 'the job to tell its progress')
  await worker.close({ timeout: 1 })
  const each = (_: unknown, n: number) => ({ group: n % 9 === 0 ? `tenant-${UNBROKEN}-${n}` : `tenant-${n}` })
  const pushed = await bills.pushMany(
    Array.from({ length: GROUPS }, (_, n) => ({ customer: { id: n }, amount: n * 1.25 })),
    { each },
  )
  await bills.limitGroup('tenant-1', { running: 10, rate: { count: 5, per: '10s', burst: 20 }, weight: 4 })
  await bills.override({ limits: { rate: '60/s' } })

  const parts = pond.queue('statements/parts')
  const ids = (await parts.pushMany(Array.from({ length: PARENTS }, (_, n) => n))).map(({ id }) => id)
  const whole = await pond.queue(`${LONG}/merge`).push({ all: true }, { after: ids })
  for (let n = 0; n < 3; n++) await pond.queue('notify').push({ n }, { after: [whole.id] })

  const odd = pond.queue('odd')
  const { id: scheduled } = await odd.push({ n: 1 }, { delay: '3h' })
  const { id: model } = await odd.push({ n: 2 })
  const [record] = await operations.find({ ids: [model] })
  const undecodable = newId()
  if (record != null) {
    const data = { encoding: 'msgpack', body: new Uint8Array([0xc1, 1, 2, 3]) } as const
    await operations.restore({ records: [{ ...record, id: undecodable, data }] })
  }
  await odd.pause()

  await pond.schedule('heartbeat', 'every 1s', pond.queue('beats'), { image: 0 })
  await pond.schedule(
    `monthly-statements/${LONG}`,
    '0 9 1-7 * 1',
    bills,
    { week: 9 },
    { tz: 'America/Argentina/Buenos_Aires' },
  )
  await pond.schedules.pause(`monthly-statements/${LONG}`)
  for (const [action, queue, more] of [
    ['pause', 'odd', {}],
    [
      'override',
      LONG,
      {
        settings: ['rate'],
        detail: 'rate 100/s → 60/s, running 1 → 20, backoff 1s × 2, at most 1h, jitter 0.5 → none',
      },
    ],
    ['cancelAll', LONG, { count: 10_000_000, detail: `state: waiting, group: tenant-${UNBROKEN}, data: …` }],
    ['requeue', 'statements/parts', { id: dead }],
    ['limitGroup', LONG, { group: `tenant-${UNBROKEN}` }],
    ['pauseSchedule', LONG, { schedule: `monthly-statements/${LONG}` }],
  ] as const) {
    const who = 'augusta.ada.king@operations.example.org'
    await actionDone(pond, { who, through: 'dashboard', action, queue, count: 1, ...more })
  }
  await operations.heartbeat({
    workers: Array.from({ length: 6 }, (_, n) => ({
      ...{ id: `${SILENT}/${4_000_000 + n}/${n}`, queue: n % 2 === 0 ? LONG : 'beats', host: SILENT },
      ...{ pid: 4_000_000 + n, slots: n * 250, busy: n * 199 },
    })),
    gone: [],
  })
  return {
    ...{ dead, running, undecodable, whole: whole.id, part: ids[0] ?? '' },
    ...{ waiting: pushed[0]?.id ?? '', scheduled },
  }
}

/** Rules in each phase, and deliveries that fail. @returns ends it */
export function alarms(pond: Millpond): () => Promise<void> {
  const watching = alerts(pond, {
    rules: [
      { name: 'too many wait', when: { depth: 10 }, for: 0 },
      {
        name: `a rule with a name that was written by somebody with much time ${'and more '.repeat(3)}`.trim(),
        queue: LONG,
        when: { oldest: 1 },
        for: '1h',
      },
      { name: 'long waits', when: { waitP95: '5m' } },
      { name: 'nobody there', queue: 'statements/parts', when: { noWorker: true } },
    ],
    notify: () => Promise.reject(new Error('503')),
    every: '1s',
  })
  return () => watching.close()
}
