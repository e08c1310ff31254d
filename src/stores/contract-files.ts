/**
 * Reads a folder of `contract/`, for a process that runs from the sources. The build (`build/main.ts`) replaces each
 * module that calls this, `sql-files.ts` or `lua-files.ts`, by one that holds the files' texts, so that the published
 * package and a bundle of it read no files.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** @returns the texts by the files' names, such as `push.sql` and `migrations/001_initial.sql`, in the order of the names */
export function filesIn(folder: URL): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => /\.(sql|lua)$/.test(name))
    .sort()
  return new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]))
}
