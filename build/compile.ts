/** Compiles `src/`. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Manifest } from './prune.ts'

export const ROOT = fileURLToPath(new URL('../', import.meta.url))
export const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** @param options of the compiler */
export function compile(folder: string, ...options: string[]): void {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', folder, ...options]
  execFileSync(process.execPath, [compiler, ...args], { stdio: 'inherit' })
}
