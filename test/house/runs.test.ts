/** Every test file is in one of the two runs, and each file that has a name like one is found by the runner. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DEEP, UNITS, USUAL } from '../main.ts'

const cwd = new URL('../../', import.meta.url)
const list = ['ls-files', '--cached', '--others', '--exclude-standard', '*.test.ts', '*.test.js', '*.test.tsx']
const tracked = execFileSync('git', list, { cwd, encoding: 'utf8' }).trim().split('\n')

test('each test file is in `npm test` or in `npm run test:deep`, and in one alone', () => {
  const files = [UNITS, USUAL, DEEP].flatMap((pattern) => globSync(pattern, { cwd }))
  assert.deepEqual(files.sort(), tracked.sort())
})

test('CI runs what the README says', () => {
  assert.ok(readFileSync(new URL('.ci/run', cwd), 'utf8').split('\n').includes('npm test'))
})
