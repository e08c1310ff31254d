/**
 * Reads a store's folder of `contract/`, for a process that runs from the sources. The build (`build/main.ts`) replaces each `contract.ts`
 * that calls this by a module that holds the texts themselves, so that the published package and a bundle of it read no files.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** @returns the texts by their names, such as `push.sql` and `migrations/001_initial.sql`, in the order of the names */
export function textsIn(folder: URL): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => /\.(sql|lua)$/.test(name))
    .sort()
  return new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]))
}
