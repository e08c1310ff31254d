/**
 * The part of JSON Schema (2020-12) that the routes need. One schema checks requests, is their TypeScript type, and is in the OpenAPI
 * document, so the three cannot differ.
 */
import { types } from 'node:util'
import { isId } from '../values/jobs/ids.ts'
import { LAST_TIME } from '../values/time/duration.ts'

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
  readonly exclusiveMinimum?: number
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
/** The type of an object, by its required and its optional members. */
export type Members<Required, Optional> = { [Name in keyof Required]: Fitting<Required[Name]> } & {
  [Name in keyof Optional]?: Fitting<Optional[Name]>
}

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

/** It may have other members, too, unless the rules say otherwise. */
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

/** Most issues in an answer; a batch may have thousands. */
const MAX_ISSUES = 20

/** What is wrong with the value; nothing if it fits. */
export function check(value: unknown, schema: Schema): Issue[] {
  const issues: Issue[] = []
  visit(value, schema, '', issues)
  return issues
}

function visit(value: unknown, schema: Schema, path: string, issues: Issue[]): void {
  if (issues.length >= MAX_ISSUES) return
  const wrong = (message: string | undefined) => {
    if (message !== undefined) issues.push({ path, message })
    return message !== undefined
  }
  if (wrong(faultOfKind(value, schema))) return
  if (schema.not !== undefined && check(value, schema.not).length === 0) wrong(schema.not.description ?? 'is excluded')
  if (typeof value === 'string') wrong(faultOfText(value, schema))
  else if (typeof value === 'number') wrong(faultOfNumber(value, schema))
  else if (Array.isArray(value)) {
    const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
    if (value.length < minItems) wrong(`must have ${minItems} items at least`)
    else if (value.length > maxItems) wrong(`must have ${maxItems} items at most`)
    else if (items) for (const [index, item] of value.entries()) visit(item, items, joined(path, index), issues)
  } else if (isObject(value)) {
    for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) wrong(`${name} is missing`)
    const { properties = {}, additionalProperties = true } = schema
    for (const [name, item] of Object.entries(value)) {
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (own !== undefined) visit(item, own, joined(path, name), issues)
      else if (!additionalProperties && wrong(`has an unknown member ${unknownName(name, properties)}`)) return
    }
  }
}

/** A name that is not known, and those that are. */
export function unknownName(name: string, known: Properties): string {
  const names = Object.keys(known)
  return `${quoted(name)}; ${names.length === 0 ? 'there are none here' : `known are ${names.join(', ')}`}`
}

/** The beginning of a name that a client sent. */
export const quoted = (name: string): string => JSON.stringify(name.slice(0, 40))

function faultOfKind(value: unknown, { type, enum: values, anyOf, description }: Schema): string | undefined {
  const types = typeof type === 'string' ? [type] : type
  if (types?.some((one) => isOf(value, one)) === false) return `must be ${types.map(named).join(' or ')}`
  if (values?.includes(value) === false) return `must be one of ${values.map((one) => JSON.stringify(one)).join(', ')}`
  if (!anyOf?.every((one) => check(value, one).length > 0)) return undefined
  return `must be ${description ?? 'of one of the kinds that the schema lists'}`
}

function faultOfText(value: string, schema: Schema): string | undefined {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema
  if (value.length < minLength) return `must have ${minLength} characters at least`
  // A code point takes at most two units, so short texts are not counted.
  if (value.length > maxLength && [...value.slice(0, 2 * maxLength + 2)].length > maxLength) {
    return `must have ${maxLength} characters at most`
  }
  if (pattern !== undefined && !patternOf(pattern).test(value)) return `must match ${pattern}`
  if (format === 'uuid' && !isId(value)) return 'must be a UUID'
  if (format === 'date-time' && timeOf(value) === undefined) return 'must be a time such as 2030-01-01T12:00:00Z'
  return undefined
}

function faultOfNumber(value: number, { minimum, exclusiveMinimum, maximum }: Schema): string | undefined {
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return `must be above ${exclusiveMinimum}`
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`
  return maximum !== undefined && value > maximum ? `must be at most ${maximum}` : undefined
}

function isOf(value: unknown, type: SchemaType): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isInteger(value)
  return type === 'number' ? Number.isFinite(value) : typeof value === type
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !types.isUint8Array(value)
}

function named(type: SchemaType): string {
  return type === 'null' ? 'null' : /^[aio]/.test(type) ? `an ${type}` : `a ${type}`
}

function joined(path: string, part: string | number): string {
  return path === '' ? String(part) : `${path}.${part}`
}

const TIME =
  /^(\d{4}-[01]\d-[0-3]\d)[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/**
 * Milliseconds since 1970 of a date-time (RFC 3339); a leap second is the second after it. Undefined if it is none, or
 * if in UTC it is after the year 9999, which no answer could name.
 */
export function timeOf(text: string): number | undefined {
  const [, date] = TIME.exec(text) ?? []
  // A Date takes a 30 February for the 1 March.
  if (date === undefined || !new Date(date).toJSON()?.startsWith(date)) return undefined
  const leap = text.slice(17, 19) === '60'
  const ms = Date.parse((leap ? `${text.slice(0, 17)}59${text.slice(19)}` : text).toUpperCase()) + (leap ? 1000 : 0)
  return ms <= LAST_TIME ? ms : undefined
}

/** Of a time that `timeOf` reads, or that is a number of milliseconds already. */
export const msOf = (time: number | string): number | undefined => (typeof time === 'number' ? time : timeOf(time))

/** The patterns are those of the tables, so there are few. */
const patterns = new Map<string, RegExp>()

function patternOf(source: string): RegExp {
  const pattern = patterns.get(source) ?? new RegExp(source, 'u')
  patterns.set(source, pattern)
  return pattern
}
