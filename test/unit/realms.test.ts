/** Values of other realms count as what they are: a `vm` context has classes of its own, as a test of Jest has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createContext, runInContext } from 'node:vm'
import { batch, Millpond } from '../../src/index.ts'
import { decode, encode } from '../../src/values/encoding/encoding.ts'
import { errorSummary, safeError } from '../../src/values/errors/safe-error.ts'
import { jobError } from '../../src/values/jobs/job.ts'
import { isError } from '../../src/values/runtime/realms.ts'

const realm = createContext({})
const foreign = (code: string): unknown => runInContext(code, realm)

test('an error of another realm is an error', () => {
  const error = foreign(`Object.assign(new TypeError('broken'), { code: 'E_BROKEN' })`)
  assert.equal(error instanceof Error, false)
  assert.equal(isError(error), true)
  assert.equal(isError(new DOMException('aborted')), true)
  const { code, name, message } = jobError(error)
  assert.deepEqual([code, name, message], ['HandlerFailed', 'TypeError', 'broken'])
  assert.match(errorSummary(error), /^TypeError \(E_BROKEN\)/)
  assert.equal(safeError(error).message, 'broken')
  // Masked, as those of this realm are.
  assert.doesNotMatch(safeError(foreign(`try { JSON.parse('{"secret": x') } catch (e) { e }`)).message, /secret/)
})

test('the copy of an error of another realm has its name, properties and cause', () => {
  const error = foreign(
    `Object.assign(new TypeError('broken', { cause: new RangeError('too far') }), { code: 'E_BROKEN' })`,
  )
  const copy = safeError(error)
  assert.equal(copy.name, 'TypeError')
  assert.equal(Reflect.get(copy, 'code'), 'E_BROKEN')
  assert.ok(copy.cause instanceof RangeError)
  assert.equal(copy.cause.message, 'too far')
})

test('a handler that gives up with an error of another realm: the job keeps it', async () => {
  const pond = await Millpond.open('memory:')
  try {
    const queue = pond.queue('q')
    const ended = Promise.withResolvers<string>()
    queue.work((_, ctx) => {
      const outcome = ctx.giveUp(foreign(`new RangeError('too far')`))
      ended.resolve(outcome.message)
      return outcome
    })
    const { id } = await queue.push(1)
    assert.match(await ended.promise, /too far/)
    await assert.rejects(pond.result(id), { code: 'JobFailed' })
    const error = (await pond.job(id))?.error
    assert.deepEqual([error?.code, error?.name, error?.message], ['GaveUp', 'RangeError', 'too far'])
  } finally {
    await pond.close()
  }
})

test('what is no error is none, whatever it does when it is looked at', () => {
  const trap = () => {
    throw new Error('trapped')
  }
  const proxy = new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap })
  for (const value of [undefined, null, 'Error', {}, { message: 'm', stack: 's' }, () => {}, proxy]) {
    assert.equal(isError(value), false)
  }
})

test('batch: an error of another realm rejects its caller', async () => {
  const load = batch((names: string[]) => names.map((name) => foreign(`new Error('no ${name}')`) as Error))
  await assert.rejects(load('Bob'), { message: 'no Bob' })
})

test('a batch handler: its job fails, and its Map answers', async () => {
  const pond = await Millpond.open('memory:')
  try {
    const failing = pond.queue('failing', { retry: { attempts: 1 } })
    failing.work((jobs) => jobs.map(() => foreign(`new RangeError('too far')`)), { batch: { max: 2 } })
    const { id } = await failing.push(1)
    await assert.rejects(pond.result(id), (error: Error) => /too far/.test(String(error.cause)))
    const mapped = pond.queue<number>('mapped')
    mapped.work(
      (jobs) => {
        const answers = foreign('new Map()') as Map<string, number>
        for (const job of jobs) answers.set(job.id, job.data + 1)
        return answers
      },
      { batch: { max: 2 } },
    )
    assert.equal(await pond.result((await mapped.push(1)).id), 2)
  } finally {
    await pond.close()
  }
})

test('bytes of another realm are bytes, and an invalid Date is refused', () => {
  const bytes = encode(foreign('new Uint8Array([1, 2, 3])'), 'data', 100)
  assert.equal(bytes.encoding, 'bytes')
  assert.deepEqual(decode(bytes, 'data'), new Uint8Array([1, 2, 3]))
  assert.throws(() => encode(foreign('new Date(NaN)'), 'data', 100), { code: 'PayloadNotEncodable' })
})

test('the name of an error is bounded, as its message is', () => {
  const error = Object.assign(new Error('m'), { name: 'N'.repeat(1e6) })
  assert.ok(jobError(error).name.length <= 201)
  assert.equal(jobError(Object.assign(new Error('m'), { name: 'a\0\ud83d' })).name, 'a\\0\ufffd')
})
