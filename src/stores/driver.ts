/** Loads the client of a store: an optional dependency, asked for when a store first needs it. */
import { MillpondError } from '../errors.ts'

/** @throws DriverMissing */
export async function loadDriver<T>(store: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw new MillpondError('DriverMissing', `the ${store} store needs the package ${name}: npm install ${name}`, {
      cause,
    })
  }
}
