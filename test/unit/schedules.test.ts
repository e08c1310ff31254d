import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { firingId, firingTimes, versionOf } from '../../src/values/schedules/firing.ts'
import type { ScheduledJob, Timing } from '../../src/values/schedules/records.ts'
import { timesOf } from '../../src/values/schedules/times.ts'
import { wordsOf } from '../../src/values/schedules/words.ts'
import { vectors } from './vectors.ts'

interface Line {
  about: string
  when: string
  tz: string
  from?: string | null
  until?: string | null
}

const { times, missed, ids, versions, refused } = vectors<{
  times: (Line & { after: string; next: (string | null)[] })[]
  missed: (Line & Pick<Timing, 'missed'> & { expected: string; now: string; fired: string[]; next: string | null })[]
  ids: { name: string; time: string; jitter: number; id: string; delay: number }[]
  versions: (Timing & { job: ScheduledJob; version: string })[]
  refused: Line[]
}>('schedules')

const moment = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Date.parse(text)
const lineOf = ({ when, tz, from, until }: Line) => ({ when, tz, from: moment(from), until: moment(until) })
const textOf = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString().replace('.000Z', 'Z')

describe('the times of a schedule', () => {
  for (const line of times) {
    test(line.about, () => {
      const all = timesOf(lineOf(line))
      let at: number | null = Date.parse(line.after)
      for (const expected of line.next) {
        if (at === null) assert.fail('there is a time after the last one')
        at = all.after(at)
        assert.equal(textOf(at), expected)
      }
      const found = line.next.filter((text) => text !== null).map((text) => Date.parse(text))
      const last = found.at(-1)
      if (last === undefined) return
      assert.deepEqual(all.before(last + 1, found.length), found, 'backwards, they are the same')
    })
  }

  for (const line of refused) {
    test(`refused: ${line.about}`, () => assert.throws(() => timesOf(lineOf(line)), { code: 'InvalidOption' }))
  }
})

describe('missed times', () => {
  for (const { expected, now, fired, next, ...line } of missed) {
    test(`${line.missed}: ${line.about}`, () => {
      const timing = { ...lineOf(line), missed: line.missed, jitter: 0 }
      const found = firingTimes(timing, Date.parse(expected), Date.parse(now))
      assert.deepEqual([found.times.map(textOf), textOf(found.next)], [fired, next])
    })
  }

  test('all: the last 1,000 at most, 100 at once', () => {
    const timing = { when: 'every 1s', tz: 'UTC', missed: 'all', jitter: 0, from: null, until: null } as const
    const first = firingTimes(timing, 1000, 5_000_000)
    assert.deepEqual([first.times[0], first.times.length, first.next], [4_001_000, 100, 4_101_000])
    const last = firingTimes(timing, 4_901_000, 5_000_000)
    assert.deepEqual([last.times.length, last.next], [100, 5_001_000])
  })
})

test('the id of a firing is made of its name and time', () => {
  for (const { name, time, jitter, ...expected } of ids) {
    assert.deepEqual(firingId(name, Date.parse(time), jitter), expected)
  }
})

test('the version of a declaration', () => {
  for (const { job, version, ...timing } of versions) assert.equal(versionOf(timing, job), version)
})

test('a line in words; without words, the line', async () => {
  assert.equal(
    await wordsOf({ when: '0 7 * * MON-FRI', tz: 'Europe/Paris' }),
    'At 07:00, Monday through Friday (Europe/Paris)',
  )
  assert.equal(await wordsOf({ when: 'every 90s', tz: 'UTC' }), 'Every 90s')
  assert.equal(await wordsOf({ when: '0 20 1 * +MON', tz: 'UTC' }), '0 20 1 * +MON (UTC)')
})
