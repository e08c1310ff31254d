/** The package as it is published, laid into a project with its dependencies, as npm lays them. */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Not by npm pack, which would build in the folder that another test may pack from at the same time. */
export async function layPackage(project: string, clients: readonly string[]): Promise<void> {
  const own = join(project, 'node_modules/millpond')
  mkdirSync(own, { recursive: true })
  await promisify(execFile)(process.execPath, [join(ROOT, 'build/main.ts'), join(own, 'dist')])
  copyFileSync(join(ROOT, 'package.json'), join(own, 'package.json'))
  const dependencies = ['msgpackr', 'croner', 'cronstrue', ...clients]
  for (const name of dependencies) layInstalled(project, name)
  const listed = Object.fromEntries(['millpond', ...dependencies].map((name) => [name, '*']))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module', dependencies: listed }))
}

/** A package that is installed here. @param as the name that it gets there */
export function layInstalled(project: string, name: string, as = name): void {
  const place = join(project, 'node_modules', as)
  mkdirSync(dirname(place), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules', name), place)
}
