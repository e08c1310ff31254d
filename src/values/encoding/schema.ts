/** Standard Schema (https://standardschema.dev), version 1: the part of its interface that validation needs. */
import { types } from 'node:util'
import { MillpondError } from '../errors/errors.ts'

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}
type PathPart = PropertyKey | { readonly key: PropertyKey }
type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly PathPart[] | undefined }[] }

export function isStandardSchema(value: unknown): true | string {
  const { '~standard': standard } = Object(value)
  return typeof standard?.validate === 'function' || 'a Standard Schema, such as one of zod, valibot or arktype'
}

/**
 * The schema's output for a value; a promise only when the schema needs one, so that a synchronous schema costs no tick.
 * @throws SchemaMismatch
 */
export function validate<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  queue: string,
): Output | Promise<Output> {
  const settle = (result: SchemaResult<Output>): Output => {
    if (result.issues === undefined) return result.value
    const issues = result.issues.map(({ message, path = [] }) => ({
      message: withoutValues(message, at(value, path) ?? value),
      ...(path.length > 0 ? { path: pathText(path) } : {}),
    }))
    const first = issues[0]
    throw new MillpondError(
      'SchemaMismatch',
      `data does not fit the schema of queue ${queue}: ${first?.path === undefined ? '' : `${first.path}: `}` +
        (first?.message ?? 'no reason given') +
        (issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''),
      { issues, queue },
    )
  }
  const result = schema['~standard'].validate(value)
  return types.isPromise(result) ? result.then(settle) : settle(result)
}

/** Texts of a value that are looked for in a message; a larger value is not searched to its end. */
const MOST_TEXTS = 1000
/** Characters. Shorter texts tell nothing, and would be found in any message. */
const SHORTEST = 3

/** Some schemas repeat the value that they refuse, as in `must be a number (was "…")`. A payload stands in no error. */
function withoutValues(message: string, value: unknown): string {
  let clean = message
  // The longest first, since one may be a part of another.
  for (const text of textsIn(value).sort((a, b) => b.length - a.length)) {
    if (text.length >= SHORTEST) clean = clean.replaceAll(text, '…')
  }
  return clean
}

function textsIn(value: unknown): string[] {
  const texts: string[] = []
  const waiting = [value]
  for (let looked = 0; looked < MOST_TEXTS && waiting.length > 0; looked++) {
    const item = waiting.pop()
    if (typeof item === 'string') texts.push(item, JSON.stringify(item).slice(1, -1))
    else if (typeof item === 'number' || typeof item === 'bigint') texts.push(String(item))
    else if (typeof item === 'object' && item !== null) waiting.push(...Object.values(item).slice(0, MOST_TEXTS))
  }
  return texts
}

/** What the path leads to. */
function at(value: unknown, path: readonly PathPart[]): unknown {
  let found = value
  for (const part of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = Reflect.get(found, typeof part === 'object' ? part.key : part)
  }
  return found
}

function pathText(path: readonly PathPart[]): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}
