/**
 * Loads the client of a store: an optional dependency, asked for when a store first needs it. Each import stands in a `try` of its own, by
 * which bundlers know that the package may be missing; some then put an empty module in its place.
 */

import { MillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import { isError } from '../values/runtime/realms.ts'

/** @throws DriverMissing where the package is not installed or cannot be loaded, NotSupported where it is too old */
export async function loadIoredis(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>> {
  try {
    // In a bundle of webpack's a CommonJS module has no named exports.
    const { default: ioredis } = await import('ioredis')
    if (typeof ioredis?.Redis === 'function') return ioredis
    if (typeof ioredis !== 'function') throw new Error("Cannot find package 'ioredis'")
  } catch (cause) {
    throw notLoaded('Redis', 'ioredis', cause)
  }
  throw new MillpondError('NotSupported', 'the Redis store needs ioredis 5.3 or later: npm install ioredis@latest')
}

/** @throws DriverMissing where the package is not installed or cannot be loaded, NotSupported where it is too old */
export async function loadPg(): Promise<Pick<typeof import('pg'), 'Client' | 'Pool'>> {
  try {
    const { default: pg } = await import('pg')
    if (typeof pg?.Pool !== 'function') throw new Error("Cannot find package 'pg'")
    checkPg(pg)
    return pg
  } catch (cause) {
    throw notLoaded('PostgreSQL', 'pg', cause)
  }
}

/** @throws DriverMissing where the package is not installed or cannot be loaded, NotSupported where it is too old */
export async function loadAmqplib(): Promise<Pick<typeof import('amqplib'), 'connect'>> {
  try {
    const { default: amqplib } = await import('amqplib')
    if (typeof amqplib?.connect === 'function') return amqplib
    throw new Error("Cannot find package 'amqplib'")
  } catch (cause) {
    throw notLoaded('RabbitMQ', 'amqplib', cause)
  }
}

/**
 * `pg` before 8.12 sends a text without parameters as a script, so that a handler could end its own transaction. 8.12 waits for ever for
 * the end of a connection on which the network swallows everything.
 * @param pg the package, or the Client of a Pool
 * @throws NotSupported where it is older than 8.12; 8.12 cannot be told apart
 */
export function checkPg(pg: unknown): void {
  const Query: unknown = typeof pg === 'object' || typeof pg === 'function' ? Reflect.get(pg ?? {}, 'Query') : undefined
  // Another client with the same methods, or pg-native, which must know for itself.
  if (typeof Query !== 'function' || !('requiresPreparation' in Query.prototype)) return
  const query: object = Reflect.construct(Query, [{ text: '', queryMode: 'extended' }])
  if ('queryMode' in query && query.queryMode === 'extended') return
  throw new MillpondError(
    'NotSupported',
    'the PostgreSQL store needs pg 8.13 or later, as older ones take several statements for one: npm install pg@latest',
  )
}

function notLoaded(store: string, name: string, cause: unknown): MillpondError {
  if (cause instanceof MillpondError) return cause
  const said = isError(cause) ? cause.message : ''
  // The package itself, not one that it imports.
  const missing = /not find|not resolve|not a dependency/i.test(said) && new RegExp(`["']${name}["']`).test(said)
  const message = missing
    ? `the ${store} store needs the package ${name}: npm install ${name}`
    : `the package ${name} of the ${store} store cannot be loaded: ${safeText(cause)}. If this is a bundle, leave ` +
      `${name} out of it (external), and install it beside the bundle`
  return new MillpondError('DriverMissing', message, { cause })
}
