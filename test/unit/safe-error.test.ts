/** What is left of an error of others, and what is told of one of the application's. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { errorSummary, safeError, safeText } from '../../src/values/errors/safe-error.ts'
import { assertClean, CANARY } from '../secrets/canary.ts'

function thrownBy(run: () => unknown): Error {
  try {
    run()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('it was to throw an error')
}

/** Errors as drivers, servers and the platform make them. */
const FOREIGN: [title: string, error: unknown, left: RegExp][] = [
  ['parameters', Object.assign(new Error('refused'), { command: { name: 'auth', args: [CANARY] } }), /^refused$/],
  ['hidden properties', Object.defineProperty(new Error('refused'), 'query', { value: CANARY }), /^refused$/],
  ['symbols', Object.assign(new Error('refused'), { [Symbol(CANARY)]: CANARY }), /^refused$/],
  ['a cause', new Error('refused', { cause: Object.assign(new Error('why'), { detail: CANARY }) }), /^refused$/],
  ['a cause that is no error', new Error('refused', { cause: { password: CANARY } }), /^refused$/],
  ['JSON', thrownBy(() => JSON.parse(`{"a": ${CANARY}}`)), /JSON/],
  ['JSON in lines', thrownBy(() => JSON.parse(`{"a":\n "\n ${CANARY}\n    at ${CANARY}"`)), /JSON/],
  ['a URL', thrownBy(() => new URL(`redis://u:${CANARY}/@h`)), /^Invalid URL$/],
  ['a URL in the message', new Error(`cannot reach redis://u:12/${CANARY}@host:1`), /redis:\/\/…@host:1$/],
  ['an argument', thrownBy(() => Buffer.from(Object(Symbol(CANARY)))), /Received/],
  ['an argument of a wrong type', thrownBy(() => process.chdir(Object([CANARY]))), /Received/],
  ['a number as text', thrownBy(() => new Array(Number(`1e99`))), /rray length/],
  ['a clone', thrownBy(() => structuredClone({ [CANARY]: () => CANARY })), /copied to another thread$/],
  [
    'an unknown command',
    new Error(`ERR unknown command 'evalsha', with args beginning with: '${CANARY}' `),
    /'evalsha'$/,
  ],
  [
    'a data exception',
    Object.assign(new Error(`invalid input syntax for type uuid: "${CANARY}"`), { code: '22P02' }),
    /uuid: "…"$/,
  ],
  [
    'one in French',
    Object.assign(new Error(`syntaxe invalide : « ${CANARY} »`), { code: '22P02' }),
    /^syntaxe invalide : "…"$/,
  ],
  [
    'a broken constraint',
    Object.assign(new Error('duplicate key'), { code: '23505', detail: `(email)=(${CANARY})` }),
    /^duplicate key$/,
  ],
  [
    'several errors',
    new AggregateError([Object.assign(new Error('one'), { config: CANARY }), new Error('two')]),
    /^one; two$/,
  ],
  ['a text', CANARY, /no error/],
  ['an object', { message: CANARY }, /no error/],
  ['nothing', undefined, /no error/],
]

describe('safeError', () => {
  for (const [title, error, left] of FOREIGN) {
    test(`${title}: what it carries is not kept`, () => {
      const safe = safeError(error)
      assertClean(safe, title)
      assertClean(safeText(error), title)
      assert.match(safe.message, left)
    })
  }

  test('name, code, class and place are kept', () => {
    const error = Object.assign(new RangeError('too far'), { code: 'E1', errno: -2, syscall: 'open', constraint: 'c' })
    error.name = 'FarError'
    const safe = safeError(error)
    assert.ok(safe instanceof RangeError)
    assert.deepEqual({ ...safe }, { code: 'E1', errno: -2, syscall: 'open', constraint: 'c' })
    assert.equal(safe.name, 'FarError')
    assert.match(safe.stack ?? '', /^FarError: too far\n +at .*safe-error\.test\.ts/)
    assert.equal(safeError(safe), safe, 'a safe one is not copied again')
  })

  test('an error whose properties throw is told of all the same', () => {
    const broken = Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error(CANARY)
      },
    })
    assertClean(safeError(broken), 'it')
    assertClean(errorSummary(broken), 'it')
    const trap = () => {
      throw new Error(CANARY)
    }
    const proxy: unknown = new Proxy(new Error('x'), { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap })
    for (const told of [safeError(proxy), safeText(proxy), errorSummary(proxy)]) assertClean(told, 'it')
  })

  test('several errors that hold themselves come to an end', () => {
    const several = new AggregateError([new Error('one')])
    several.errors.push(several, several, several)
    assert.match(safeError(several).message, /^one; one; /)
  })

  test('a cause that refers to itself comes to an end', () => {
    const error = new Error('round')
    error.cause = error
    assert.equal(safeError(error).message, 'round')
  })
})

test('messages of megabytes take linear time, whatever they hold', () => {
  // In a process of its own, which can be ended: it would take hours.
  const program = fileURLToPath(new URL('long-messages.ts', import.meta.url))
  const { stdout, stderr } = spawnSync(process.execPath, [program], { timeout: 60_000, encoding: 'utf8' })
  assert.equal(stdout, 'over\n', stderr)
})

describe('errorSummary', () => {
  test('names class, code and place, and not the message', () => {
    const error = Object.assign(new TypeError(`${CANARY}\n    at ${CANARY}`), { code: 'E1' })
    assert.match(errorSummary(error), /^TypeError \(E1\) at .*safe-error\.test\.ts:\d+:\d+\)?$/)
    assertClean(errorSummary(error), 'it')
    assertClean(errorSummary(Object.assign(new Error('x'), { name: `${CANARY} ` })), 'a name that is none')
    for (const odd of [CANARY, { CANARY }, null, undefined, 5]) assertClean(errorSummary(odd), 'what is no error')
  })
})
