import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { isStandardSchema, type StandardSchema, validate } from '../../src/values/encoding/schema.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { coded } from './suite.ts'

type Validate = StandardSchema<unknown, unknown>['~standard']['validate']
const schemaOf = (check: Validate): StandardSchema<unknown, unknown> => ({
  '~standard': { version: 1, vendor: 'test', validate: check },
})

describe('schema', () => {
  test('a synchronous one answers at once, with its output', () => {
    assert.equal(
      validate(
        schemaOf((value) => ({ value: `${value}!` })),
        'a',
        'q',
      ),
      'a!',
    )
    assert.equal(
      validate(
        schemaOf(() => ({ value: undefined })),
        'a',
        'q',
      ),
      undefined,
    )
    const zod = z.object({ n: z.coerce.number().default(1) })
    assert.deepEqual(validate(zod, { n: '5' }, 'q'), { n: 5 })
    assert.deepEqual(validate(zod, {}, 'q'), { n: 1 })
  })

  test('an asynchronous one answers with a promise', async () => {
    const answer = validate(
      schemaOf(async (value) => ({ value })),
      5,
      'q',
    )
    assert.ok(answer instanceof Promise)
    assert.equal(await answer, 5)
    const zod = z.number().refine(async (n) => n > 0, 'must be above 0')
    await assert.rejects(async () => validate(zod, -1, 'q'), coded('SchemaMismatch', /above 0/))
  })

  test('issues are told with their paths', () => {
    const key = Symbol('part')
    const check: Validate = () => ({
      issues: [
        { message: 'is wrong', path: ['list', 0, { key: 'name' }, { key }] },
        { message: 'is odd', path: [] },
        { message: 'is bad' },
      ],
    })
    assert.throws(
      () => validate(schemaOf(check), 1, 'emails'),
      (error) => {
        assert.ok(isMillpondError(error, 'SchemaMismatch'))
        assert.match(error.message, /queue emails: list\.0\.name\.Symbol\(part\): is wrong \(and 2 more\)$/)
        assert.deepEqual(error.issues, [
          { message: 'is wrong', path: 'list.0.name.Symbol(part)' },
          { message: 'is odd' },
          { message: 'is bad' },
        ])
        assert.equal(error.queue, 'emails')
        return true
      },
    )
  })

  test('a refusal without issues is still one', () => {
    assert.throws(
      () =>
        validate(
          schemaOf(() => ({ issues: [] })),
          1,
          'q',
        ),
      coded('SchemaMismatch', /no reason given/),
    )
  })

  test('what a schema throws itself goes through', () => {
    const broken = schemaOf(() => {
      throw new RangeError('broken')
    })
    assert.throws(() => validate(broken, 1, 'q'), RangeError)
  })

  test('what is a Standard Schema and what is not', () => {
    const asFunction = Object.assign(
      () => {},
      schemaOf((value) => ({ value })),
    )
    for (const schema of [z.string(), schemaOf((value) => ({ value })), asFunction]) {
      assert.equal(isStandardSchema(schema), true)
    }
    const others: unknown[] = [null, undefined, 5, 'x', {}, () => {}, { '~standard': null }, { '~standard': {} }]
    others.push({ '~standard': { validate: true } }, { parse: () => {} })
    for (const other of others) assert.match(String(isStandardSchema(other)), /Standard Schema/)
  })
})
