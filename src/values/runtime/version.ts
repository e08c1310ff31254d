import { readFileSync } from 'node:fs'

/** Of this package. The build (`build/main.ts`) replaces this module by one that holds the version. */
export function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  return String(version)
}
