/** The search box's language, and what it suggests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSearch, suggestions, withTerm } from '../../src/dashboard/page/search.ts'

const NOW = Date.UTC(2026, 2, 4, 12)
const HOUR = 3_600_000

test('texts and what they search for', () => {
  for (const [text, search] of [
    ['', { state: 'waiting' }],
    ['state:dead', { state: 'dead' }],
    ['state:dead group:tenant-7 key:order-1', { state: 'dead', group: 'tenant-7', key: 'order-1' }],
    ['group:none', { state: 'waiting', group: '' }],
    ['group:"none of ours"', { state: 'waiting', group: 'none of ours' }],
    [
      'error:"connection reset" code:TimedOut',
      { state: 'waiting', errorText: 'connection reset', errorCode: 'TimedOut' },
    ],
    ['pushed:<1h', { state: 'waiting', pushedFrom: NOW - HOUR }],
    ['pushed:>1.5h', { state: 'waiting', pushedBefore: NOW - 1.5 * HOUR }],
    ['pushed:2026-03-04', { state: 'waiting', pushedFrom: Date.UTC(2026, 2, 4) }],
    [
      'pushed:2026-03-03..2026-03-04',
      { state: 'waiting', pushedFrom: Date.UTC(2026, 2, 3), pushedBefore: Date.UTC(2026, 2, 4) },
    ],
    ['data:"user 7"', { state: 'waiting', text: 'user 7' }],
    ['ada example', { state: 'waiting', text: 'ada example' }],
    ['"https://example.org/a b"', { state: 'waiting', text: 'https://example.org/a b' }],
    ['data.user.id:7', { state: 'waiting', data: { path: ['user', 'id'], value: '7' } }],
    [
      'Data.User.Name:"Ada L" data:x',
      { state: 'waiting', data: { path: ['User', 'Name'], value: 'Ada L' }, text: 'x' },
    ],
    ['data.at:12:30', { state: 'waiting', data: { path: ['at'], value: '12:30' } }],
    ['STATE:dead', { state: 'dead' }],
    ['key:a:b:c', { state: 'waiting', key: 'a:b:c' }],
  ] as const) {
    assert.deepEqual(parseSearch(text, 'waiting', NOW), { search }, text)
  }
})

test('faults are said in words', () => {
  for (const [text, fault] of [
    ['state:gone', /state is one of/],
    ['state:', /state: has no value/],
    ['colour:red', /no qualifier colour:/],
    ['pushed:soon', /pushed is such as/],
    ['pushed:..', /pushed is such as/],
    ['data:a words', /not both/],
    ['data.user:', /data.user: has no value/],
    ['data.user..id:7', /such as data.user.id:7/],
    ['data.:7', /such as data.user.id:7/],
    ['data.a:1 data.b:2', /one place/],
  ] as const) {
    assert.match(parseSearch(text, 'waiting', NOW).fault ?? '', fault, text)
  }
})

test('suggestions complete qualifiers, then values', () => {
  const labels = (text: string) => suggestions(text, { group: ['tenant-1', 'tenant 2'] }).map(({ label }) => label)
  assert.ok(labels('').includes('state:dead'))
  assert.deepEqual(labels('sta'), ['state:dead'])
  assert.deepEqual(labels('state:d'), ['state:dead', 'state:done'])
  assert.ok(!labels('state:dead ').includes('state:dead'))
  const places = (text: string) =>
    suggestions(text, { places: ['user.id', 'user.name', 'to'] }).map(({ label }) => label)
  assert.ok(places('da').includes('data.user.id:7'))
  assert.deepEqual(places('state:dead data.us'), ['data.user.id:', 'data.user.name:'])
  assert.deepEqual(places('data.to:x'), [])
  assert.deepEqual(labels('group:t'), ['group:tenant-1', 'group:"tenant 2"'])
  assert.deepEqual(
    suggestions('state:dead group:tenant-', { group: ['tenant-1'] }).map(({ text }) => text),
    ['state:dead group:tenant-1 '],
  )
  assert.equal(withTerm('state:dead group:a', 'state', 'done'), 'state:done group:a')
  assert.equal(withTerm('group:"a b" x', 'group', undefined), 'x')
})
