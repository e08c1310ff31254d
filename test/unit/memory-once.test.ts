/** The keys that the memory store remembers: most sweeps look at none, and yet each is forgotten in time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OnceKeys } from '../../src/stores/memory/once.ts'

const KEYS = ['a', 'b', 'c', 'd', 'e']
const key = fc.constantFrom(...KEYS)
const step = fc.oneof(
  fc.record({ kind: fc.constant('remember' as const), key, ms: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ kind: fc.constantFrom('take' as const, 'forget' as const), key }),
  fc.record({ kind: fc.constant('expire' as const), limit: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 10 }) }),
)

test('each remembered key is known until its time, and then forgotten by the sweeps', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 100, size: 'max' }), (steps) => {
      const once = new OnceKeys()
      /** Key → until when. */
      const known = new Map<string, number>()
      let now = 0
      for (const each of steps) {
        if (each.kind === 'pass') now += each.ms
        if (each.kind === 'remember') {
          once.remember(each.key, each.key, { for: each.ms, since: 'end' }, 0, now, now)
          known.set(each.key, Math.max(now + each.ms, known.get(each.key) ?? 0))
        }
        if (each.kind === 'take') once.take(each.key)
        if (each.kind === 'forget') once.forget(each.key, each.key)
        if (each.kind === 'take' || each.kind === 'forget') known.delete(each.key)
        if (each.kind === 'expire') {
          const over = [...known].filter(([, until]) => until <= now).slice(0, each.limit)
          assert.equal(once.expire(now, each.limit), over.length)
          for (const [name] of over) known.delete(name)
        }
        for (const name of KEYS)
          assert.equal(once.remembered(name, now), (known.get(name) ?? 0) > now ? name : undefined)
      }
    }),
    { numRuns: 300 },
  )
})
