/** The scripts of `millpond completion`, run by the shells that are there. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { VERBS } from '../../src/cli/verbs/index.ts'
import { scratch } from '../support/cleaning.ts'
import { ran } from './in-process.ts'

const isMissing = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status !== 0 && `no ${shell}`

async function script(shell: string): Promise<string> {
  const { code, out } = await ran(['completion', shell])
  assert.equal(code, 0)
  for (const name of Object.keys(VERBS)) assert.match(out, new RegExp(`\\b${name}\\b`))
  return out
}

test('bash completes verbs and options', { skip: isMissing('bash') }, async (t) => {
  const file = join(scratch(t), 'millpond')
  writeFileSync(file, await script('bash'))
  const complete = (...words: string[]) => {
    const list = words.map((word) => `'${word}'`).join(' ')
    const code = `. ${file}; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _millpond; echo "\${COMPREPLY[@]}"`
    const { stdout, stderr, status } = spawnSync('bash', ['-c', code], { encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    return stdout.trim().split(' ')
  }
  assert.deepEqual(complete('millpond', 're'), ['requeue', 'remove', 'resume'])
  assert.deepEqual(complete('millpond', 'requeue', '--err'), ['--error', '--error-code'])
  assert.deepEqual(complete('millpond', 'help', 'doc'), ['doctor'])
})

for (const shell of ['zsh', 'fish'] as const) {
  test(`${shell} takes the script`, { skip: isMissing(shell) }, async (t) => {
    const file = join(scratch(t), 'millpond')
    writeFileSync(file, await script(shell))
    const args = shell === 'zsh' ? ['-n', file] : ['--no-execute', file]
    const { status, stderr } = spawnSync(shell, args, { encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
  })
}

test('fish completes verbs and options', { skip: isMissing('fish') }, async (t) => {
  const folder = scratch(t)
  const file = join(folder, 'millpond.fish')
  writeFileSync(file, await script('fish'))
  const complete = (line: string) => {
    const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
    const code = `source ${file}; complete -C '${line}'`
    const { stdout, stderr, status } = spawnSync('fish', ['--no-config', '-c', code], { encoding: 'utf8', env })
    assert.deepEqual([status, stderr], [0, ''])
    return stdout.split('\n').flatMap((found) => found.split('\t', 1)[0] || [])
  }
  assert.deepEqual(complete('millpond re'), ['remove', 'requeue', 'resume'])
  assert.deepEqual(complete('millpond requeue --err'), ['--error', '--error-code'])
  // Of the verb alone, although the queue has the name of another one.
  assert.deepEqual(complete('millpond pause jobs --gr'), [])
  assert.deepEqual(complete('millpond help doc'), ['doctor'])
  assert.ok(complete('millpond --').includes('--version'))
})

test('the scripts for zsh and fish name every verb', async () => {
  await script('zsh')
  await script('fish')
  const { code, err } = await ran(['completion', 'csh'])
  assert.deepEqual([code, /SHELL is one of bash, zsh, fish/.test(err)], [2, true])
})
