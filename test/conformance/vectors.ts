/** The lifecycle vectors as data: their types, and the translation of their shorthand (see the README next to them). */

import { readdirSync, readFileSync } from 'node:fs'
import type { Capabilities, OperationName } from '../../src/store.ts'

const folder = new URL('../../contract/vectors/lifecycle/', import.meta.url)

/** 2026-01-01T00:00:00Z. */
export const EPOCH = 1_767_225_600_000

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

export interface Step {
  at: number
  op: OperationName
  in: { [name: string]: Json }
  out?: Json
}

export interface Vector {
  name: string
  about: string
  /** What a store may lack: then the vector is not for it. */
  needs?: readonly (keyof Capabilities)[]
  steps: Step[]
}

export function loadVectors(): Vector[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return files.sort().map((file) => {
    const vector: Vector = JSON.parse(readFileSync(new URL(file, folder), 'utf8'))
    if (`${vector.name}.json` !== file) throw new Error(`${file} calls itself ${vector.name}`)
    return vector
  })
}

const PREFIX = '019b76da-a800-7000-8000-'

/** Short id → UUIDv7. */
export function longId(short: string): string {
  return PREFIX + Buffer.from(short).toString('hex').padStart(12, '0')
}

function shortId(id: string): string {
  return Buffer.from(id.slice(PREFIX.length).replace(/^(00)+/, ''), 'hex').toString()
}

const TIMES: ReadonlySet<string> = new Set([
  ...['now', 'pushedAt', 'dueAt', 'startedAt', 'finishedAt', 'since', 'seen'],
  ...['nextAt', 'lastAt', 'changedAt', 'from', 'until'],
])

const IDS: ReadonlySet<string> = new Set(['id', 'sample', 'parent', 'parents', 'children', 'gone'])

/** A store's answer in the shorthand of the vectors. */
export function shorten(value: unknown, name = ''): Json {
  if (typeof value === 'string') return IDS.has(name) && value.startsWith(PREFIX) ? shortId(value) : value
  if (typeof value === 'number') return TIMES.has(name) ? value - EPOCH : value
  if (typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => shorten(item, name))
  if (typeof value !== 'object') throw new Error(`${name} is ${typeof value}, which no answer may hold`)
  if ('encoding' in value && 'body' in value && value.body instanceof Uint8Array) {
    return { encoding: shorten(value.encoding), base64: Buffer.from(value.body).toString('base64') }
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shorten(item, key)]))
}
