import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { PondEmitter } from '../../src/values/jobs/events.ts'

describe('events', () => {
  test('listeners are told in their order, until they are stopped', () => {
    const events = new PondEmitter()
    const heard: unknown[] = []
    assert.equal(events.has('full'), false)
    const stop = events.on('full', (event) => heard.push('one', event))
    events.on('full', () => heard.push('two'))
    assert.equal(events.has('full'), true)
    events.emit('full', { queue: 'q' })
    stop()
    events.emit('full', { queue: 'r' })
    assert.deepEqual(heard, ['one', { queue: 'q' }, 'two', 'two'])
  })

  test('a listener that listens twice is stopped once by each, however often that is called', () => {
    const events = new PondEmitter()
    let heard = 0
    const listener = () => heard++
    const stops = [events.on('full', listener), events.on('full', listener)]
    stops[0]?.()
    stops[0]?.()
    events.emit('full', { queue: 'q' })
    assert.deepEqual([heard, events.has('full')], [1, true])
    stops[1]?.()
    events.emit('full', { queue: 'q' })
    assert.deepEqual([heard, events.has('full')], [1, false])
  })

  test('trouble without a listener is a process warning, once per code; with one, it is the listener’s', async () => {
    const events = new PondEmitter()
    const warnings: (Error & { code?: unknown })[] = []
    const hear = (warning: Error) => void warnings.push(warning)
    process.on('warning', hear)
    try {
      for (const code of ['StoreBusy', 'StoreFull', 'StoreBusy', 'StoreFull'] as const) {
        events.trouble(new MillpondError(code, `trouble of kind ${code}`))
      }
      await setImmediate()
      const expected = ['StoreBusy', 'StoreFull']
      assert.deepEqual(
        warnings.map(({ name, code }) => [name, code]),
        expected.map((code) => ['MillpondWarning', code]),
      )
      assert.match(warnings[0]?.message ?? '', /^trouble of kind StoreBusy .*'error' event/)
      const errors: MillpondError[] = []
      events.on('error', (error) => errors.push(error))
      const error = new MillpondError('StoreFailed', 'x')
      events.trouble(error)
      events.trouble(error)
      await setImmediate()
      assert.deepEqual([errors, warnings.length], [[error, error], 2])
    } finally {
      process.off('warning', hear)
    }
  })
})
