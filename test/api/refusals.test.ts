/** Bad input of every kind: an error with a code, a message that names what to do, nothing stored, nothing hanging. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { type ErrorCode, Millpond, type QueueOptions } from '../../src/index.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { onEachStore, refused } from './suite.ts'

/** What a caller without types may pass. */
function anything<T>(value: unknown): T {
  // The one cast of these tests: what is passed is wrong on purpose.
  return value as T
}

const BAD_OPTIONS: [title: string, options: unknown, code: ErrorCode, message: RegExp][] = [
  ['a priority over 9', { priority: 11 }, 'InvalidOption', /priority.*0 to 9.*11/],
  ['a negative priority', { priority: -1 }, 'InvalidOption', /priority/],
  ['a priority between two', { priority: 4.5 }, 'InvalidOption', /whole number/],
  ['a priority in words', { priority: 'high' }, 'InvalidOption', /"high"/],
  ['delay and runAt', { delay: '5m', runAt: 0 }, 'InvalidOption', /delay or runAt, not both/],
  ['a delay without unit', { delay: '5' }, 'InvalidOption', /delay.*'250ms'/],
  ['a delay in an unknown unit', { delay: '5 weeks' }, 'InvalidOption', /"5 weeks"/],
  ['a negative delay', { delay: -1 }, 'InvalidOption', /from 0 ms/],
  ['an endless delay', { delay: Number.POSITIVE_INFINITY }, 'InvalidOption', /delay/],
  ['no date', { runAt: new Date(Number.NaN) }, 'InvalidOption', /runAt.*valid Date/],
  ['a date as text', { runAt: '2030-01-01' }, 'InvalidOption', /runAt.*Date/],
  ['a date past all dates', { runAt: 9e15 }, 'InvalidOption', /runAt/],
  ['no attempts', { attempts: 0 }, 'InvalidOption', /attempts.*1 to/],
  ['no time', { timeout: 0 }, 'InvalidOption', /timeout.*from 1 ms/],
  ['more time than a timer has', { timeout: '25d' }, 'InvalidOption', /timeout.*24d/],
  ['an unknown option', { prio: 5 }, 'InvalidOption', /"prio"; known are .*priority/],
  ['no options at all', 5, 'InvalidOption', /takes an object/],
  ['a list of options', [], 'InvalidOption', /takes an object/],
  ['an empty key', { key: '' }, 'InvalidName', /1 to 255 bytes/],
  ['a key with a NUL', { key: 'a\0b' }, 'InvalidName', /NUL/],
  ['a key of 256 bytes', { key: 'é'.repeat(128) }, 'InvalidName', /255 bytes/],
  ['a key that is a number', { key: 42 }, 'InvalidName', /key must be a string/],
  ['a group with a lone surrogate', { group: '\uD800' }, 'InvalidName', /surrogates/],
  ['an id that is none', { id: 'job-1' }, 'InvalidName', /UUID/],
  ['a trace with line breaks', { trace: 'a\nb' }, 'InvalidOption', /trace.*ASCII/],
  ['no transaction', { tx: null }, 'InvalidOption', /tx/],
]

const BAD_QUEUES: [title: string, options: unknown, message: RegExp][] = [
  ['an unknown option', { capcity: 5 }, /"capcity"; known are .*capacity/],
  ['no capacity', { capacity: 0 }, /capacity.*from 1/],
  ['whenFull of another kind', { whenFull: 'drop' }, /'reject', 'wait' or 'spill'/],
  ['a lease too short', { lease: '10ms' }, /lease.*from 50 ms/],
  ['a lease longer than a timer', { lease: '30d' }, /lease.*24d/],
  ['an unknown kind of backoff', { retry: { backoff: 'linear' } }, /'exponential' or 'fixed'/],
  ['a backoff without type', { retry: { backoff: { base: '1s' } } }, /type is missing/],
  ['a backoff with an unknown option', { retry: { backoff: { type: 'fixed', min: 1 } } }, /"min"/],
  ['a backoff that is a number', { retry: { backoff: 5 } }, /retry\.backoff/],
  ['an unknown option of retry', { retry: { tries: 5 } }, /"tries"; known are attempts/],
  ['attempts in words', { retry: { attempts: 'many' } }, /attempts/],
  ['an unknown option of keep', { keep: { failed: '1h' } }, /"failed"/],
  ['keep in other units', { keep: { done: '1 hour' } }, /keep\.done/],
  ['a schema that is none', { schema: { parse() {} } }, /Standard Schema/],
]

onEachStore('refusals', {
  'options of a push': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    for (const [title, options, code, message] of BAD_OPTIONS) {
      await assert.doesNotReject(refused(queue.push(1, anything(options)), code, message), title)
      await assert.doesNotReject(
        refused(queue.pushMany([1], { each: () => anything(options) }), code),
        `each: ${title}`,
      )
    }
    await refused(queue.pushMany([1], anything({ prio: 5 })), 'InvalidOption', /"prio"/)
    await refused(queue.pushMany(anything('ab')), 'InvalidOption', /takes an array/)
    await refused(queue.pushMany([1], anything({ each: 5 })), 'InvalidOption', /each.*function/)
    assert.equal((await queue.stats()).counts.waiting + (await queue.stats()).counts.scheduled, 0)
    assert.deepEqual(await pond.stats(), [], 'not even the queue has come to be')
  },

  'names of queues': async ({ open }) => {
    const pond = await open()
    for (const name of [
      '',
      'a\0b',
      ' a',
      '-a',
      'a b',
      'ä',
      'a'.repeat(129),
      anything<string>(5),
      anything<string>(undefined),
    ]) {
      await refused(() => pond.queue(name), 'InvalidName', /1 to 128/)
    }
    assert.deepEqual(await pond.stats(), [])
  },

  'options of a queue': async ({ open }) => {
    const pond = await open()
    for (const [title, options, message] of BAD_QUEUES) {
      await assert.doesNotReject(
        refused(() => pond.queue('q', anything<QueueOptions>(options)), 'InvalidOption', message),
        title,
      )
    }
    assert.deepEqual(await pond.stats(), [])
  },

  'options of a worker': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    await refused(() => queue.work(anything(5)), 'InvalidOption', /function as handler/)
    for (const options of [
      { concurrency: 0 },
      { concurrency: 1.5 },
      { window: '25d' },
      { transaction: 1 },
      { slots: 1 },
    ]) {
      await refused(
        () => queue.work(() => {}, anything(options)),
        'InvalidOption',
        /concurrency|window|transaction|slots/,
      )
    }
  },

  'ids, states and options of questions': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    const { id } = await queue.push(1)
    for (const bad of ['', 'x', `${id}0`, anything<string>(null), anything<string>(7)]) {
      await refused(pond.job(bad), 'InvalidName', /UUID/)
      await refused(pond.result(bad), 'InvalidName', /UUID/)
      await refused(pond.cancel(bad), 'InvalidName', /UUID/)
    }
    await refused(pond.result(id, { timeout: '25d' }), 'InvalidOption', /24d/)
    await refused(pond.result(id, anything({ within: 5 })), 'InvalidOption', /"within"/)
    await refused(pond.result(id, anything({ signal: {} })), 'InvalidOption', /AbortSignal/)
    await refused(queue.jobs(anything('failed')), 'InvalidOption', /state is one of blocked, scheduled, waiting/)
    const [listed] = await queue.jobs('waiting')
    await refused(queue.jobs('dead', anything({ after: listed?.cursor })), 'InvalidOption', /list of dead jobs/)
    for (const bad of ['', 'x', id, 'waiting.4', `waiting.${'1.'.repeat(12)}1`, anything<string>(7)]) {
      await refused(queue.jobs('waiting', { after: bad }), 'InvalidOption', /cursor/)
    }
    await refused(queue.jobs('waiting', { limit: 0 }), 'InvalidOption', /limit.*1 to 1000/)
    await refused(queue.jobs('waiting', { limit: 1001 }), 'InvalidOption', /1 to 1000/)
    await refused(queue.stats({ minutes: 61 }), 'InvalidOption', /1 to 60/)
    await refused(pond.stats(anything({ hours: 1 })), 'InvalidOption', /"hours"/)
    await refused(() => pond.close(anything({ timeout: 'soon' })), 'InvalidOption', /timeout/)
    assert.equal((await pond.job(id))?.state, 'waiting', 'a close that was refused closed nothing')
  },

  'events, lists of ids and statements': async ({ open, transactions }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
    const { id } = await queue.push(1)
    for (const name of ['complete', 'Completed', '', 'constructor', undefined, null, 5, {}]) {
      await refused(
        () => pond.on(anything<'dead'>(name), () => {}),
        'InvalidOption',
        /known are pushed, started, completed,.*error/,
      )
    }
    await refused(
      () => pond.on(anything<'dead'>('complete'), () => {}),
      'InvalidOption',
      /there is no event "complete"/,
    )
    for (const listener of [undefined, null, 'log', {}]) {
      await refused(() => pond.on('dead', anything(listener)), 'InvalidOption', /listener of dead must be a function/)
    }
    for (const ids of [id, '', null, 5, { id }, new Set([id])]) {
      await refused(queue.requeue(anything(ids)), 'InvalidOption', /array of ids, as in requeue\(\[id\]\)/)
    }
    await refused(queue.requeue(anything([5])), 'InvalidName', /UUID/)
    assert.equal((await pond.job(id))?.state, 'waiting')
    for (const [each, what] of [
      [pond.job, 'job'],
      [pond.result, 'result'],
      [pond.cancel, 'cancel'],
    ] as const) {
      await refused(each.call(pond, anything<string>({ id })), 'InvalidName', /UUID; got an object/)
      await refused(each.call(pond, anything<string>([id])), 'InvalidName', /UUID; got an array/)
      assert.ok(what)
    }
    await refused(queue.jobs(anything(undefined)), 'InvalidOption', /state is one of/)
    await refused(queue.jobs('dead', anything('5')), 'InvalidOption', /takes an object/)
    await refused(queue.stats(anything(5)), 'InvalidOption', /takes an object/)
    await refused(pond.result(id, anything('5s')), 'InvalidOption', /takes an object/)
    if (!transactions) return
    const thrown: unknown[] = []
    await using _worker = queue.work(
      async (_, { tx }) => {
        for (const call of [
          () => tx(anything(undefined)),
          () => tx(anything(['select 1'])),
          () => tx('select 1', anything('a')),
          () => tx('select 1', anything({ a: 1 })),
        ])
          await call().catch((error: unknown) => thrown.push(error))
      },
      { transaction: true },
    )
    await pond.result(id)
    assert.equal(thrown.length, 4)
    for (const error of thrown) {
      await refused(
        Promise.reject(error),
        'InvalidOption',
        /ctx\.tx takes a statement as text and an array of parameters/,
      )
    }
  },

  'options of opening': async ({ url }) => {
    const bad: unknown[] = [{ maxPayload: 0 }, { maxPayload: 1.5 }, { signals: 'yes' }, { maxPaylod: 5 }, null, 'x', []]
    bad.push(
      { signals: { before: 1 } },
      { signals: { timeout: -1 } },
      { signals: { bevore: () => {} } },
      { signals: null },
    )
    for (const options of bad) await refused(Millpond.open(url, anything(options)), 'InvalidOption')
  },
})

describe('refusals: the URL', () => {
  const folder = sharedFolder()

  test('no URL, or one of a scheme that nobody knows', async () => {
    await refused(
      Millpond.open('postgress://localhost/app'),
      'UnknownScheme',
      /"postgress:"; known are memory:, sqlite:/,
    )
    await refused(Millpond.open('constructor:x'), 'UnknownScheme')
    await refused(Millpond.open(new URL('ftp://host/')), 'UnknownScheme')
    for (const url of ['', 'app.db', anything<string>(undefined), anything<string>({})]) {
      await refused(Millpond.open(url), 'InvalidOption', /begins with one of memory:, sqlite:/)
    }
  })

  test('options of the store itself', async () => {
    await refused(Millpond.open('memory:there'), 'InvalidOption')
    await refused(Millpond.open('memory:?size=5'), 'InvalidOption', /size/)
    await refused(Millpond.open('sqlite:'), 'InvalidOption')
    await refused(Millpond.open(`sqlite:${join(folder, 'a.db')}?sink=full`), 'InvalidOption', /sink/)
    await refused(Millpond.open(`sqlite:${join(folder, 'a.db')}?sync=maybe`), 'InvalidOption', /sync/)
  })

  test('a path that cannot be written', async () => {
    await refused(Millpond.open(`sqlite:${join(folder, 'no', 'such', 'folder', 'a.db')}`), 'StoreUnavailable', /folder/)
    await refused(Millpond.open(`sqlite:${folder}`), 'StoreUnavailable', /folder/)
    const sealed = join(folder, 'sealed')
    mkdirSync(sealed)
    chmodSync(sealed, 0o500)
    // Root may write everywhere.
    if (process.getuid?.() !== 0) {
      await refused(Millpond.open(`sqlite:${join(sealed, 'a.db')}`), 'StoreUnavailable', /permission/)
    }
  })

  test('a file that is no database, and one of a newer version', async () => {
    const text = join(folder, 'text.db')
    writeFileSync(text, 'this is no database, and long enough to have a header in its place. '.repeat(100))
    await refused(Millpond.open(`sqlite:${text}`), 'StoreCorrupt', /backup/)
    const newer = join(folder, 'newer.db')
    const pond = await Millpond.open(`sqlite:${newer}`)
    await pond.close()
    const db = new DatabaseSync(newer)
    db.exec(`update millpond_meta set value = 999 where key = 'version'`)
    db.close()
    await refused(Millpond.open(`sqlite:${newer}`), 'StoreVersion', /upgrade/)
  })

  test('stored data that is not what its encoding says', async () => {
    const path = join(folder, 'broken.db')
    const pond = await Millpond.open(`sqlite:${path}`)
    const queue = pond.queue('q', { retry: { attempts: 1 } })
    const { id } = await queue.push({ a: 1 })
    const db = new DatabaseSync(path)
    const tables = db.prepare(`select name from sqlite_schema where sql like '% data %' and type = 'table'`).all()
    for (const { name } of tables) db.exec(`update ${String(name)} set data = '{"a":'`)
    db.close()
    assert.deepEqual((await pond.job(id))?.undecodable, ['data'])
    let ran = false
    const worker = queue.work(() => {
      ran = true
    })
    const failed = await refused(pond.result(id), 'JobFailed', /not valid json/)
    assert.ok(failed.cause instanceof Error && 'code' in failed.cause)
    assert.equal(failed.cause.code, 'PayloadNotDecodable')
    assert.equal(ran, false)
    await worker.close()
    await pond.close()
  })
})
