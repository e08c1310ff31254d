/** What the test runners of Deno and Bun write as JUnit reports. */

export interface Case {
  /** The suites that it is in and its own name, joined by ` > `. */
  name: string
  outcome: 'passed' | 'failed' | 'skipped'
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

const unescaped = (text: string): string =>
  text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal))
  })

export function casesOf(xml: string): Case[] {
  const cases = [...xml.matchAll(/<testcase\s([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)].map(
    ([, attributes = '', body = '']): Case => {
      const attribute = (name: string) => unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '')
      // Bun has the suites in a name of their own, Deno has them before the test's.
      const suites = attributes.includes('assertions=') ? attribute('classname') : ''
      return {
        name: suites === '' ? attribute('name') : `${suites} > ${attribute('name')}`,
        outcome: /<(failure|error)\b/.test(body) ? 'failed' : /<skipped\b/.test(body) ? 'skipped' : 'passed',
      }
    },
  )
  // Deno lists suites as tests, which fail with any of theirs.
  return cases.filter(({ name }) => !cases.some((other) => other.name.startsWith(`${name} > `)))
}
