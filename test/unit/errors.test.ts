/** The codes in the source, the contract, the documentation and the tests are the same ones. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ERROR_CODES, type ErrorCode, isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'
import { errorsContract, errorsPage, PAGE } from './errors-doc.ts'

const contract = errorsContract()
const TESTS = fileURLToPath(new URL('..', import.meta.url))

/** Codes that stand as a text in some test, other than this one. */
function tested(): Set<string> {
  const names = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  const found = new Set<string>()
  for (const name of names) {
    if (!name.endsWith('.test.ts') || basename(name) === 'errors.test.ts') continue
    const text = readFileSync(join(TESTS, name), 'utf8')
    // As the text of an assertion, or as the name in a table of them; a comment does not count.
    for (const [, code = ''] of text.replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, '').matchAll(/['"]([A-Z][A-Za-z]+)['"]/g))
      found.add(code)
    for (const [, code = ''] of text.matchAll(/^\s*([A-Z][A-Za-z]+):/gm)) found.add(code)
  }
  return found
}

describe('errors', () => {
  test('the source and the contract have the same codes', () => {
    assert.deepEqual([...ERROR_CODES].sort(), Object.keys(contract).sort())
    assert.equal(new Set(ERROR_CODES).size, ERROR_CODES.length)
  })

  test('an error knows whether to try again, as the contract says', () => {
    for (const code of ERROR_CODES) {
      assert.equal(new MillpondError(code, 'x').retryable, contract[code]?.retryable, code)
    }
  })

  test('every code says what it means and what to do, in whole sentences', () => {
    for (const [code, { meaning, action, retryable }] of Object.entries(contract)) {
      assert.match(code, /^[A-Z][a-z]+(?:[A-Z][a-z]+)*$/)
      for (const text of [meaning, action]) assert.match(text, /^[A-Z].*\.$/, code)
      assert.equal(typeof retryable, 'boolean', code)
    }
  })

  test('the documentation lists exactly these codes, and is up to date', () => {
    const page = readFileSync(PAGE, 'utf8')
    const listed = [...page.matchAll(/^\| `([A-Za-z]+)` +\|/gm)].map(([, code]) => code)
    assert.deepEqual(listed, Object.keys(contract))
    assert.equal(page, errorsPage(), 'run `node test/unit/errors-doc.ts`')
  })

  test('every code is reached by a test', () => {
    const found = tested()
    assert.deepEqual(
      Object.keys(contract).filter((code) => !found.has(code)),
      [],
    )
  })

  test('an error holds what it is given, and nothing else', () => {
    const thrown = new Error('thrown')
    const error = new MillpondError('QueueFull', 'is full', { thrown, id: 'i', queue: 'q', pushed: 0, issues: [] })
    assert.ok(error instanceof Error)
    assert.deepEqual(
      [error.name, error.message, error.code, error.cause],
      ['MillpondError', 'is full', 'QueueFull', thrown],
    )
    assert.deepEqual([error.id, error.queue, error.pushed, error.issues], ['i', 'q', 0, []])
    const bare = new MillpondError('Closed', 'x')
    assert.equal('cause' in bare, false)
    for (const name of ['id', 'queue', 'pushed', 'issues']) assert.equal(Object.hasOwn(bare, name), false, name)
  })

  test('a foreign cause is kept as a copy without what it carries; one of ours, and the application’s own, as they are', () => {
    const foreign = Object.assign(new TypeError('no such thing'), {
      code: 'E1',
      args: ['secret'],
      cause: new Error('first'),
    })
    const { cause } = new MillpondError('StoreFailed', 'x', { cause: foreign })
    assert.ok(cause instanceof TypeError && cause !== foreign)
    assert.deepEqual({ ...cause }, { code: 'E1' })
    assert.deepEqual([cause.message, cause.stack], ['no such thing', foreign.stack])
    assert.ok(cause.cause instanceof Error && cause.cause.message === 'first')
    const own = new MillpondError('Closed', 'x')
    assert.equal(new MillpondError('StoreFailed', 'x', { cause: own }).cause, own)
    assert.equal(new MillpondError('HandlerFailed', 'x', { thrown: foreign }).cause, foreign)
  })

  test('it is told from other errors, and by its code', () => {
    const error = new MillpondError('Closed', 'x')
    assert.equal(isMillpondError(error), true)
    assert.equal(isMillpondError(error, 'Closed'), true)
    assert.equal(isMillpondError(error, 'StoreBusy'), false)
    const others: unknown[] = [new Error('x'), { code: 'Closed' }, null, undefined, 'Closed']
    for (const other of others) {
      for (const code of [undefined, 'Closed'] satisfies (ErrorCode | undefined)[]) {
        assert.equal(isMillpondError(other, code), false)
      }
    }
  })
})
