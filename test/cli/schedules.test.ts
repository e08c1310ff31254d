/** `millpond schedules`, on every store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { ran } from './in-process.ts'
import { onStores } from './stores.ts'

const lines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

onStores('schedules: list, pause, resume, run, remove', async (_t, url) => {
  const pond = await Millpond.open(url)
  const reports = pond.queue<string>('reports')
  const call = (...args: string[]) => ran(['schedules', ...args], { MILLPOND_STORE: url })
  const ok = async (...args: string[]) => {
    const { code, out, err } = await call(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${out}${err}`)
    return out
  }
  assert.equal(await ok(), 'No schedules.\n')
  await pond.schedule('nightly', '0 7 * * MON-FRI', reports, 'night', { tz: 'Europe/Paris', paused: true })
  await pond.schedule('yearly', '@yearly', reports, 'year', { key: 'year' })
  const listed = await ok()
  assert.match(listed, /^schedule +when +zone +queue +next +last$/m)
  assert.match(listed, /^nightly +0 7 \* \* MON-FRI +Europe\/Paris +reports +- +- +paused$/m)
  assert.match(listed, /^yearly +@yearly +UTC +reports /m)
  assert.deepEqual(
    lines(await ok('list', '--json')).map(({ name, paused, declared }) => [name, paused, declared]),
    [
      ['nightly', true, true],
      ['yearly', false, true],
    ],
  )
  assert.equal(lines(await ok('list', 'yearly', '--json')).length, 1)

  assert.equal(await ok('resume', 'nightly'), 'nightly fires again.\n')
  assert.equal(await ok('pause', 'nightly', 'yearly'), 'nightly is paused.\nyearly is paused.\n')
  const states = async () => (await pond.schedules.list()).map(({ paused }) => paused)
  assert.deepEqual(await states(), [true, true])

  // One name with a slip: nothing is changed.
  const slip = await call('resume', 'yearly', 'nigthly')
  assert.deepEqual([slip.code, slip.out], [3, ''])
  assert.match(slip.err, /has no schedule "nigthly"; did you mean nightly\?/)
  assert.deepEqual(await states(), [true, true])

  const [first] = lines(await ok('run', 'yearly', '--json'))
  assert.deepEqual([first?.name, first?.existing], ['yearly', false])
  assert.equal(await ok('run', 'yearly'), `yearly has a live job: ${first?.id}\n`)
  assert.match(await ok('run', 'nightly'), /^nightly has a new job: [0-9a-f-]{36}\n$/)
  assert.deepEqual((await reports.jobs('waiting')).map(({ data }) => data).sort(), ['night', 'year'])

  assert.equal(await ok('remove', 'nightly'), 'nightly is removed.\n')
  assert.deepEqual(lines(await ok('remove', 'yearly', '--json')), [{ name: 'yearly', removed: true }])
  assert.equal((await call('list', 'yearly')).code, 3)
  assert.deepEqual(await pond.schedules.list(), [])
  await pond.close()
})

test('schedules preview needs no store', async () => {
  const told = await ran(['schedules', 'preview', '0 9 LW * *', '--tz', 'Europe/Paris', '--count', '3'])
  assert.deepEqual([told.code, told.err], [0, ''])
  assert.match(told.out, /^At 09:00, on the last weekday of the month \(Europe\/Paris\)\n/)
  assert.equal(told.out.match(/^\d{4}-\d\d-\d\dT0[78]:00:00\.000Z {2}\w+day, .* at 09:00:00 CES?T$/gm)?.length, 3)
  const [json] = lines((await ran(['schedules', 'preview', 'every 90s', '--count', '2', '--json'])).out)
  assert.equal(json?.words, 'Every 90s')
  assert.ok(Array.isArray(json?.times) && json.times.length === 2)
})

test('schedules: wrong calls end with 2', async () => {
  const wrong: [args: string[], message: RegExp][] = [
    [['pauze', 'nightly'], /the action is one of list, .*; did you mean pause\?/],
    [['remove'], /remove needs the NAME of a schedule/],
    [['preview'], /preview needs one LINE, in quotes/],
    [['preview', '0', '9', '*', '*', '*'], /preview needs one LINE, in quotes/],
    [['preview', '0 9 31 2 *'], /InvalidOption: the cron line "0 9 31 2 \*" never fires/],
    [['preview', '@daily', '--tz', 'Mars/Olympus'], /an IANA time zone/],
    [['preview', '@daily', '--count', '0'], /--count is a whole number from 1 to 100/],
    [['list', '--tz', 'UTC'], /--tz and --count go with preview/],
  ]
  for (const [args, message] of wrong) {
    const { code, out, err } = await ran(['schedules', ...args], { MILLPOND_STORE: 'memory:' })
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    assert.match(err, message)
  }
})
