/** What any decoded body must be, before a schema or a hook sees it. */
import { Refusal } from './problem.ts'

/** Levels of arrays and objects. Far more than real payloads have, and nothing that walks them is in danger of its stack. */
export const MAX_DEPTH = 100

/**
 * Refuses what is nested too deep, and keys that reach the prototype when a careless merge copies them: `__proto__`, and
 * `constructor` over an object with `prototype`.
 * @param numbers finite: of JSON, where `1e999` parses as Infinity, which would be written as null
 * @throws Refusal
 */
export function checkPlain(value: unknown, numbers: 'finite' | 'any' = 'finite', depth = 0): void {
  if (typeof value === 'number' && numbers === 'finite' && !Number.isFinite(value)) throw overflow()
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  if (depth === MAX_DEPTH) throw malformed(`it is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    for (const item of value) checkPlain(item, numbers, depth + 1)
    return
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw malformed('it has a key named __proto__')
    if (key === 'constructor' && typeof item === 'object' && item !== null && Object.hasOwn(item, 'prototype')) {
      throw malformed('it has a key named constructor.prototype')
    }
    checkPlain(item, numbers, depth + 1)
  }
}

/** For `JSON.stringify`, of what another parser made of a body. @throws Refusal for what it would write as null */
export function finite(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw overflow()
  return value
}

function overflow(): Refusal {
  return malformed('it holds a number beyond what a double can hold, such as 1e999')
}

/** The refusal of a body that is not what its Content-Type says. */
export function malformed(reason: string): Refusal {
  return new Refusal({ status: 400, code: 'PayloadNotDecodable', detail: `The body was not understood: ${reason}.` })
}
