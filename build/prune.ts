/** Removes what nothing published reaches: modules of types alone, modules that only embedded programs have, inner declarations. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { Declarations } from './declarations.ts'

export interface Manifest {
  version: string
  exports: Readonly<Record<string, { types: string; default: string } | string>>
  bin: Readonly<Record<string, string>>
}

/** What people import: the path of each entry point, and its files below `dist`. */
export const entriesOf = ({ exports }: Manifest): { path: string; types: string; code: string }[] =>
  Object.entries(exports).flatMap(([path, entry]) => {
    if (typeof entry === 'string') return []
    return [{ path: path.replace('.', 'millpond'), types: inDist(entry.types), code: inDist(entry.default) }]
  })

const inDist = (path: string): string => path.replace('./dist/', '')

export const declarationsIn = (folder: string, manifest: Manifest): Declarations =>
  new Declarations(
    entriesOf(manifest).map(({ types }) => types),
    (file) => readFileSync(join(folder, file), 'utf8'),
  )

/** @param folder what `dist` of the manifest stands for */
export async function prune(folder: string, manifest: Manifest): Promise<void> {
  const programs = [...entriesOf(manifest).map(({ code }) => code), ...Object.values(manifest.bin).map(inDist)]
  const modules = new Set(await modulesOf(folder, programs))
  const declarations = [...declarationsIn(folder, manifest).files()]
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && !modules.has(file.slice(folder.length + 1).replaceAll('\\', '/'))) rmSync(file)
  }
  for (const [file, text] of declarations) writeFileSync(join(folder, file), text)
}

/** The modules that the entries import, statically or not. */
async function modulesOf(folder: string, entries: readonly string[]): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [...entries],
    outdir: 'unwritten',
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'error',
  })
  return Object.keys(metafile.inputs)
}
