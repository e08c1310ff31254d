/** The query of a URL, by the parameters of its route. */
import { invalid } from './refuse.ts'
import { check, type Properties, type Schema } from './schema.ts'

/** @throws Refusal: 400 for what is unknown, given twice or not as its schema says */
export function parseQuery(given: URLSearchParams, known: Properties): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const [name, text] of given) {
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined
    const shown = JSON.stringify(name.slice(0, 40))
    if (parameter === undefined) throw wrong(`has an unknown parameter ${shown}; ${knownOnes(known)}`)
    if (Object.hasOwn(query, name)) throw wrong(`has ${shown} twice`)
    const value = valueIn(text, parameter)
    const issues = check(value, parameter)
    if (issues.length > 0) throw invalid(400, `The parameter ${shown}`, issues)
    query[name] = value
  }
  return query
}

function wrong(message: string): Error {
  return invalid(400, 'The query', [{ path: '', message }])
}

function knownOnes(known: Properties): string {
  const names = Object.keys(known)
  return names.length === 0 ? 'there are none here' : `known are ${names.join(', ')}`
}

/** What does not look like its type stays text, and is refused for it. */
function valueIn(text: string, { type }: Schema): unknown {
  return type === 'integer' && /^-?\d{1,15}$/.test(text) ? Number(text) : text
}
