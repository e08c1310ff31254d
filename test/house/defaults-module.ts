/**
 * Makes `src/values/settings/contract-defaults.ts` of `contract/defaults.json`: run `npm run docs` after changing it. A module, because the published
 * package reads no files (docs/decisions/009), and compilers put an imported JSON file outside of `dist`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const MODULE = new URL('../../src/values/settings/contract-defaults.ts', import.meta.url)

export type Figures = Record<string, Record<string, unknown>>

export function contractDefaults(): Figures {
  return JSON.parse(readFileSync(new URL('../../contract/defaults.json', import.meta.url), 'utf8'))
}

/** @returns the value at a path such as `queue.backoff.base`; throws if there is none */
export function figureAt(path: string): unknown {
  let value: unknown = contractDefaults()
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
      throw new Error(`contract/defaults.json has no ${path}`)
    }
    value = Object.entries(value).find(([key]) => key === name)?.[1]
  }
  return value
}

const HEAD = `/**
 * Every default and bound that several languages share. Times are in milliseconds, sizes in bytes.
 * Made of \`contract/defaults.json\` by \`npm run docs\`; change that, not this.
 */`

/** A number as people write it: with \`_\` between thousands. */
const grouped = (text: string): string =>
  text.replaceAll(/(?<=: |\[|, )\d{5,}\b/g, (digits) => digits.replaceAll(/\B(?=(\d{3})+$)/g, '_'))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const value = grouped(JSON.stringify(contractDefaults(), null, 1))
  writeFileSync(MODULE, `${HEAD}\nexport const DEFAULTS = ${value}\n`)
}
