import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { checkStepName } from '../../src/values/jobs/step-names.ts'
import { childId } from '../../src/worker/steps/child-id.ts'
import { coded } from './suite.ts'

interface Vectors {
  children: readonly { parent: string; key: string; id: string }[]
  names: { good: readonly string[]; bad: readonly string[] }
}
const vectors: Vectors = JSON.parse(readFileSync(new URL('../../contract/vectors/steps.json', import.meta.url), 'utf8'))

test('ids of children: vectors/steps.json', () => {
  for (const { parent, key, id } of vectors.children) assert.equal(childId(parent, key), id)
})

test('names of steps: vectors/steps.json', () => {
  for (const name of vectors.names.good) assert.equal(checkStepName(name), name)
  for (const name of vectors.names.bad) assert.throws(() => checkStepName(name), coded('InvalidOption'))
})
