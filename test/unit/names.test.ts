import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkKey, checkQueueName } from '../../src/values/settings/names.ts'
import { coded } from './suite.ts'
import { revive, vectors } from './vectors.ts'

interface Case {
  about: string
  name: unknown
}
const { queues, keys } = vectors<Record<'queues' | 'keys', { good: Case[]; bad: Case[] }>>('keys')

describe('names', () => {
  for (const { about, name } of queues.good) {
    test(`a queue may be named: ${about}`, () => assert.equal(checkQueueName(revive(name)), revive(name)))
  }
  for (const { about, name } of queues.bad) {
    test(`no queue is named: ${about}`, () => {
      assert.throws(() => checkQueueName(revive(name)), coded('InvalidName', /queue name is 1 to 128/))
    })
  }
  for (const what of ['key', 'group'] as const) {
    for (const { about, name } of keys.good) {
      test(`a ${what} may be: ${about}`, () => assert.equal(checkKey(revive(name), what), revive(name)))
    }
    for (const { about, name } of keys.bad) {
      test(`no ${what} is: ${about}`, () => {
        assert.throws(
          () => checkKey(revive(name), what),
          coded('InvalidName', new RegExp(`^${what} must be .*255 bytes`)),
        )
      })
    }
  }
})
