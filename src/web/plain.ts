/** What any decoded body must be, before a schema or a hook sees it. */
import { Refusal } from './problem.ts'

/** Levels of arrays and objects. Far more than real payloads have, and nothing that walks them is in danger of its stack. */
export const MAX_DEPTH = 100

/**
 * Refuses what is nested too deep, and keys that reach the prototype when a careless merge copies them: `__proto__`, and
 * `constructor` over an object with `prototype`.
 * @throws Refusal
 */
export function checkPlain(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  if (depth === MAX_DEPTH) throw malformed(`it is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    for (const item of value) checkPlain(item, depth + 1)
    return
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw malformed('it has a key named __proto__')
    if (key === 'constructor' && typeof item === 'object' && item !== null && Object.hasOwn(item, 'prototype')) {
      throw malformed('it has a key named constructor.prototype')
    }
    checkPlain(item, depth + 1)
  }
}

/** The refusal of a body that is not what its Content-Type says. */
export function malformed(reason: string): Refusal {
  return new Refusal({ status: 400, code: 'PayloadNotDecodable', detail: `The body was not understood: ${reason}.` })
}
