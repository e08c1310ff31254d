/**
 * The part of JSON Schema (2020-12) that the routes need. One object checks what comes in, is its TypeScript type, and stands in the
 * OpenAPI document, so that the three cannot differ.
 */
import { LAST_TIME } from '../web/time.ts'

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'

export interface Rules {
  /** Schemas with a title become components of the OpenAPI document. */
  readonly title?: string
  readonly description?: string
  readonly type?: SchemaType | readonly SchemaType[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly not?: Schema
  readonly properties?: Properties
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  /** In code points. */
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: 'uuid' | 'date-time' | 'uri'
  readonly minimum?: number
  readonly maximum?: number
}

/** `T` is the type of the values that fit. */
export interface Schema<T = unknown> extends Rules {
  /** Only for the type; no schema has it. */
  readonly fits?: T
}

export type Properties = Readonly<Record<string, Schema>>
/** The type of the values that fit a schema. */
export type Fitting<S> = S extends Schema<infer T> ? T : never
/** The same of an object, by its required and its optional members. */
export type Members<Required, Optional> = { [Name in keyof Required]: Fitting<Required[Name]> } & {
  [Name in keyof Optional]?: Fitting<Optional[Name]>
}

/** The type of a query, all of whose parameters may be left out. */
export type Query<Parameters> = Members<Record<never, Schema>, Parameters>

export function string(rules: Rules = {}): Schema<string> {
  return { ...rules, type: 'string' }
}

export function integer(minimum: number, maximum: number, rules: Rules = {}): Schema<number> {
  return { ...rules, type: 'integer', minimum, maximum }
}

export function oneOf<const T>(values: readonly T[], rules: Rules = {}): Schema<T> {
  return { ...rules, type: 'string', enum: values }
}

export function array<T>(items: Schema<T>, rules: Rules = {}): Schema<T[]> {
  return { ...rules, type: 'array', items }
}

/** May have other members, too, unless the rules say otherwise. */
export function object<Required extends Properties, Optional extends Properties = Record<never, Schema>>(
  required: Required,
  optional?: Optional,
  rules: Rules = {},
): Schema<Members<Required, Optional>> {
  const names = Object.keys(required)
  const properties = { ...required, ...optional }
  return { ...rules, type: 'object', properties, ...(names.length === 0 ? {} : { required: names }) }
}

export interface Issue {
  /** Names and indices with dots between them; empty for the whole. */
  path: string
  message: string
}

/** Most issues that are told; a batch may have thousands. */
const MAX_ISSUES = 20

/** What is wrong with the value; nothing if it fits. */
export function check(value: unknown, schema: Schema): Issue[] {
  const issues: Issue[] = []
  visit(value, schema, '', issues)
  return issues
}

function visit(value: unknown, schema: Schema, path: string, issues: Issue[]): void {
  if (issues.length >= MAX_ISSUES) return
  const wrong = (message: string) => {
    issues.push({ path, message })
  }
  const types = schema.type === undefined ? [] : typeof schema.type === 'string' ? [schema.type] : schema.type
  if (types.length > 0 && !types.some((type) => isOf(value, type))) {
    wrong(`must be ${types.map(named).join(' or ')}`)
    return
  }
  if (schema.enum !== undefined && !schema.enum.includes(value)) {
    wrong(`must be one of ${schema.enum.map((item) => JSON.stringify(item)).join(', ')}`)
    return
  }
  if (schema.anyOf?.every((one) => check(value, one).length > 0)) {
    wrong(`must be ${schema.description ?? 'of one of the kinds that the schema lists'}`)
    return
  }
  if (schema.not !== undefined && check(value, schema.not).length === 0) wrong(schema.not.description ?? 'is excluded')
  if (typeof value === 'string') checkString(value, schema, wrong)
  else if (typeof value === 'number') checkNumber(value, schema, wrong)
  else if (Array.isArray(value)) checkArray(value, schema, path, issues, wrong)
  else if (isObject(value)) checkObject(value, schema, path, issues, wrong)
}

type Wrong = (message: string) => void

function checkString(value: string, schema: Schema, wrong: Wrong): void {
  const { minLength, maxLength, pattern, format } = schema
  if (minLength !== undefined && value.length < minLength) wrong(`must have ${minLength} characters at least`)
  // A code point takes two units at the most, so that short texts need no counting.
  else if (
    maxLength !== undefined &&
    value.length > maxLength &&
    [...value.slice(0, 2 * maxLength + 2)].length > maxLength
  )
    wrong(`must have ${maxLength} characters at most`)
  else if (pattern !== undefined && !patternOf(pattern).test(value)) wrong(`must match ${pattern}`)
  else if (format === 'uuid' && !UUID.test(value)) wrong('must be a UUID')
  else if (format === 'date-time' && timeOf(value) === undefined) wrong('must be a time such as 2030-01-01T12:00:00Z')
}

function checkNumber(value: number, { minimum, maximum }: Schema, wrong: Wrong): void {
  if (minimum !== undefined && value < minimum) wrong(`must be at least ${minimum}`)
  else if (maximum !== undefined && value > maximum) wrong(`must be at most ${maximum}`)
}

function checkArray(value: unknown[], schema: Schema, path: string, issues: Issue[], wrong: Wrong): void {
  const { items, minItems, maxItems } = schema
  if (minItems !== undefined && value.length < minItems) wrong(`must have ${minItems} items at least`)
  else if (maxItems !== undefined && value.length > maxItems) wrong(`must have ${maxItems} items at most`)
  else if (items !== undefined)
    for (const [index, item] of value.entries()) visit(item, items, joined(path, index), issues)
}

function checkObject(value: object, schema: Schema, path: string, issues: Issue[], wrong: Wrong): void {
  const properties = schema.properties ?? {}
  for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) wrong(`${name} is missing`)
  for (const [name, item] of Object.entries(value)) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (own !== undefined) visit(item, own, joined(path, name), issues)
    else if (schema.additionalProperties === false) {
      const known = Object.keys(properties).join(', ')
      const shown = JSON.stringify(name.slice(0, 40))
      wrong(`has an unknown member ${shown}; ${known === '' ? 'there are none here' : `known are ${known}`}`)
      return
    }
  }
}

function isOf(value: unknown, type: SchemaType): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    default:
      return typeof value === type
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}

function named(type: SchemaType): string {
  return type === 'null' ? 'null' : /^[aio]/.test(type) ? `an ${type}` : `a ${type}`
}

function joined(path: string, part: string | number): string {
  return path === '' ? String(part) : `${path}.${part}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
const TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/**
 * Milliseconds since 1970 of a date-time (RFC 3339), a leap second being the second after it; undefined where it is none, or where in UTC it
 * is after the year 9999, so that an answer could not name it.
 */
export function timeOf(text: string): number | undefined {
  const [, year, month, day, , second] = TIME.exec(text) ?? []
  if (day === undefined || Number(day) > daysOf(Number(year), Number(month))) return undefined
  const leap = second === '60'
  const ms = Date.parse((leap ? `${text.slice(0, 17)}59${text.slice(19)}` : text).toUpperCase()) + (leap ? 1000 : 0)
  return ms <= LAST_TIME ? ms : undefined
}

/** @param month from 1 */
function daysOf(year: number, month: number): number {
  // Leap years recur every 400 years, and the first hundred would be taken for those of the 20th century.
  return new Date(Date.UTC(year + 400, month, 0)).getUTCDate()
}

/** Of the tables' own patterns, so there are few. */
const patterns = new Map<string, RegExp>()

function patternOf(source: string): RegExp {
  let pattern = patterns.get(source)
  if (pattern === undefined) {
    pattern = new RegExp(source, 'u')
    patterns.set(source, pattern)
  }
  return pattern
}
