/**
 * The report of the public API: `npm run api` writes build/api.txt from the sources, and a test fails where it is out of date. Whoever
 * reads a change to it sees what users get and lose.
 *
 *   # millpond/web            the names that an entry point exports
 *   web/accept.ts: …          each declaration that they are, or refer to, without comments, once
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile, manifest } from './compile.ts'
import { js } from './declarations.ts'
import { declarationsIn, entriesOf } from './prune.ts'

export const REPORT = new URL('api.txt', import.meta.url)

/** @param folder the declarations, as the compiler or the build writes them */
export function apiReport(folder: string): string {
  const declarations = declarationsIn(folder, manifest)
  const entries = entriesOf(manifest).map(({ path, types }) => `# ${path}\n${wrapped(declarations.exportsOf(types))}\n`)
  const shapes = declarations.kept().map(({ file, code }) => `${file.replace(/d\.ts$/, 'ts')}: ${compact(code)}\n`)
  return [...entries, ...shapes.sort()].join('\n')
}

/** Words in lines of at most 140 characters. */
const wrapped = (words: readonly string[]): string =>
  words
    .join(' ')
    .replace(/(.{1,140})(?: |$)/g, '$1\n')
    .trimEnd()

/** A line for each member of a declaration. */
function compact(code: string): string {
  const lines = js(code)
    .replace(/^export (declare )?|^declare /, '')
    .split('\n')
  const members = lines.map((line) =>
    /^ {4}\S/.test(line) && !/^ {4}[}\]]/.test(line) ? `\n  ${line.trim()}` : line.trim(),
  )
  return members
    .join(' ')
    .replaceAll(/ +\n/g, '\n')
    .replaceAll(/(?<=\S) {2,}/g, ' ')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-api-'))
  try {
    compile(folder, '--declaration', '--emitDeclarationOnly')
    writeFileSync(REPORT, apiReport(folder))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
