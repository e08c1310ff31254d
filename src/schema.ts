/** Standard Schema (https://standardschema.dev), version 1: the part of its interface that validation needs. */
import { MillpondError } from './errors.ts'

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
  return (
    (value !== null &&
      (typeof value === 'object' || typeof value === 'function') &&
      '~standard' in value &&
      typeof value['~standard'] === 'object' &&
      value['~standard'] !== null &&
      'validate' in value['~standard'] &&
      typeof value['~standard'].validate === 'function') ||
    'a Standard Schema, such as one of zod, valibot or arktype'
  )
}

/**
 * The schema's output for a value; a promise only when the schema needs one, so that a synchronous schema costs no turn.
 * @throws SchemaMismatch
 */
export function validate<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  queue: string,
): Output | Promise<Output> {
  const settle = (result: SchemaResult<Output>): Output => {
    if (result.issues === undefined) return result.value
    const issues = result.issues.map(({ message, path }) => ({
      message,
      ...(path?.length ? { path: pathText(path) } : {}),
    }))
    const first = issues[0]
    throw new MillpondError(
      'SchemaMismatch',
      `data does not fit the schema of queue ${queue}: ${first?.path === undefined ? '' : `${first.path}: `}${first?.message ?? 'no reason given'}` +
        (issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''),
      { issues, queue },
    )
  }
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then(settle) : settle(result)
}

function pathText(path: readonly PathPart[]): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}
