/**
 * Loads the client of a store: an optional dependency, asked for when a store first needs it. Each import stands in a `try` of its own, by
 * which bundlers know that the package may be missing.
 */
import { MillpondError } from '../errors.ts'
import { safeText } from '../safe-error.ts'

/** @throws DriverMissing where the package is not installed or cannot be loaded */
export async function loadIoredis(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>> {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw notLoaded('Redis', 'ioredis', cause)
  }
}

/** @throws DriverMissing where the package is not installed or cannot be loaded */
export async function loadPg(): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw notLoaded('PostgreSQL', 'pg', cause)
  }
}

function notLoaded(store: string, name: string, cause: unknown): MillpondError {
  const said = safeText(cause)
  // The package itself, not one that it imports.
  const missing = /not find|not resolve|not a dependency/i.test(said) && new RegExp(`["']${name}["']`).test(said)
  const message = missing
    ? `the ${store} store needs the package ${name}: npm install ${name}`
    : `the package ${name} of the ${store} store cannot be loaded: ${said}. If this is a bundle, leave ${name} out of it (external), and install it beside the bundle`
  return new MillpondError('DriverMissing', message, { cause })
}
