import { readFileSync } from 'node:fs'

/** Of this package; its package.json lies two folders up, whether from the sources or compiled. */
export function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return String(version)
}
