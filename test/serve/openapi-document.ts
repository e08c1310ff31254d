/** Makes `contract/openapi.json` of the service's own answer: run `npm run docs` after changing a route. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { serve } from '../../src/serve/index.ts'

export const DOCUMENT = new URL('../../contract/openapi.json', import.meta.url)

/** The document of a service with tokens, which describes a service without them as well. */
export async function openApiDocument(): Promise<unknown> {
  const token = 'a-token-for-the-document'
  const served = await serve('memory:', { tokens: [token] })
  try {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
    const answer = await served.handle(new Request('http://localhost/openapi.json', { headers }))
    if (answer.status !== 200) throw new Error(`/openapi.json answered ${answer.status}`)
    return await answer.json()
  } finally {
    await served.close()
  }
}

/** A line for each path and each schema: a change to one is one line of a diff. */
export function asText(document: unknown): string {
  const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
  const written = (value: unknown, depth: number): string => {
    if (!isObject(value) || depth === 0) return JSON.stringify(value)
    const members = Object.entries(value).map(([name, member]) => {
      return `${JSON.stringify(name)}: ${written(member, name === 'components' ? 2 : depth - 1)}`
    })
    return `{\n${members.join(',\n')}\n}`
  }
  return `${written(document, 2)}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(DOCUMENT, asText(await openApiDocument()))
