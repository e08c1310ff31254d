/**
 * Makes what is published: `node build/main.ts [FOLDER]`; the folder is `dist` unless given.
 *
 *   src/ ──compiled──► FOLDER ──embedded: what the sources read from the disk──► pruned: what no entry point reaches
 *
 * The compiled code has a line for each line of the sources but their comments, which are in the types: a stack trace and a
 * debugger need no source maps. A bundle of the package needs no files (docs/decisions/009).
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { embed } from './embed.ts'
import { prune } from './prune.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

function compile(...options: string[]): void {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', folder, ...options]
  execFileSync(process.execPath, [compiler, ...args], { stdio: 'inherit' })
}

rmSync(folder, { recursive: true, force: true })
compile('--removeComments')
compile('--declaration', '--emitDeclarationOnly')
await embed(folder, manifest.version)
await prune(folder, manifest)
