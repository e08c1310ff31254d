/** The folder for the databases of this run. It is in the clone, since a temporary folder may be in memory. */
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const DATA = fileURLToPath(new URL(`.data/${process.pid}`, import.meta.url))

let folders = 0

export function freshFolder(): string {
  const folder = `${DATA}/${folders++}`
  mkdirSync(folder, { recursive: true })
  return folder
}

export function clean(): void {
  rmSync(DATA, { recursive: true, force: true })
}
