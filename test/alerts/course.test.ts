/** The course of an alert: it fires once, resolves once, and does not flap. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AlertState, advance } from '../../src/alerts/course.ts'
import { type CheckedRule, checkRules } from '../../src/alerts/rules.ts'

/** @param given seconds and values, of one look after the other @returns the turns, with their seconds */
function turns(rule: CheckedRule, given: readonly (readonly [number, number | undefined])[]): string[] {
  let state: AlertState | undefined
  return given.flatMap(([seconds, value]) => {
    const next = advance(rule, state, value, seconds * 1000)
    state = next.state
    return next.turn === undefined ? [] : [`${seconds} ${next.turn}`]
  })
}

const ruleOf = (more: object): CheckedRule => {
  const [rule] = checkRules([{ name: 'r', when: { depth: 100 }, for: '60s', ...more }])
  assert.ok(rule)
  return rule
}

test('it fires once it has lasted, and resolves once it has been over for as long', () => {
  const looks = [0, 30, 59, 60, 90, 120].map((at) => [at, 101] as const)
  const after = [150, 180, 209, 210, 240].map((at) => [at, 100] as const)
  assert.deepEqual(turns(ruleOf({}), [...looks, ...after]), ['60 firing', '210 resolved'])
})

test('a short rise is not told, nor a short fall', () => {
  const rise = [
    [0, 101],
    [59, 100],
    [60, 101],
    [119, 100],
  ] as const
  assert.deepEqual(turns(ruleOf({}), rise), [])
  const fall = [
    [0, 101],
    [60, 101],
    [90, 1],
    [120, 101],
    [130, 1],
    [189, 101],
    [200, 1],
    [260, 1],
  ] as const
  assert.deepEqual(turns(ruleOf({}), fall), ['60 firing', '260 resolved'])
})

test('a value between the two thresholds keeps what is', () => {
  const rule = ruleOf({ for: 0, resolveAfter: 0, resolveBelow: 50 })
  const around = [99, 101, 99, 101, 51, 50, 99, 101].map((value, at) => [at, value] as const)
  assert.deepEqual(turns(rule, around), ['1 firing', '5 resolved', '7 firing'])
})

test('what cannot be read any more is over', () => {
  const rule = ruleOf({ for: 0, resolveAfter: 0 })
  assert.deepEqual(
    turns(rule, [
      [0, 101],
      [1, undefined],
      [2, undefined],
    ]),
    ['0 firing', '1 resolved'],
  )
})

test('rules that are wrong say why', () => {
  const refused: [unknown, RegExp][] = [
    [[], /at least one/],
    [[{ when: { depth: 1 } }], /name is missing/],
    [[{ name: 'a', when: {} }], /when of rule "a" takes one of waitP95, oldest, depth/],
    [[{ name: 'a', when: { depth: 1, dead: 1 } }], /takes one of/],
    [[{ name: 'a', when: { depth: -1 } }], /depth must be/],
    [[{ name: 'a', when: { depht: 1 } }], /unknown option "depht"/],
    [[{ name: 'a', when: { oldest: 'soon' } }], /oldest/],
    [[{ name: 'a', when: { oldest: '5m' }, resolveBelow: '6m' }], /resolveBelow of rule "a"/],
    [[{ name: 'a', queue: 'no good', when: { dead: 0 } }], /queue/],
    [
      [
        { name: 'a', when: { dead: 0 } },
        { name: 'a', when: { dead: 1 } },
      ],
      /two rules are named "a"/,
    ],
  ]
  for (const [rules, message] of refused) assert.throws(() => checkRules(rules), message)
  assert.throws(() => checkRules([{ name: 'a', when: { oldest: '5m' }, resolveBelow: '6m' }]), {
    code: 'InvalidOption',
  })
})
