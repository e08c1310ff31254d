/**
 * Makes what is published: `node build/main.ts [FOLDER]`; the folder is `dist` unless given.
 *
 *   src/ ──compiled──► FOLDER ──embedded: what the sources read from the disk──► pruned: what no entry point reaches
 *
 * The compiled code keeps the names and the statements of the sources, without comments: a stack trace and a debugger show readable code
 * without source maps. A bundle of the package needs no files (docs/decisions/009).
 */
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { compile, manifest, ROOT } from './compile.ts'
import { embed } from './embed.ts'
import { prune } from './prune.ts'

const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))
rmSync(folder, { recursive: true, force: true })
compile(folder, '--removeComments')
compile(folder, '--declaration', '--emitDeclarationOnly')
await embed(folder, manifest.version)
await prune(folder, manifest)
