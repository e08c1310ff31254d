/** Reads `contract/vectors/*.json`, and turns their notation into values of this language; `encoding.json` explains it. */
import { readFileSync } from 'node:fs'

export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../contract/vectors/${name}.json`, import.meta.url), 'utf8'))
}

type Make = (content: unknown) => unknown

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function list(content: unknown): unknown[] {
  if (Array.isArray(content)) return content
  throw new TypeError(`a list was due, not ${JSON.stringify(content)}`)
}

const circular = (): object => {
  const object: { self?: object } = {}
  object.self = object
  return object
}

const circularList = (): unknown[] => {
  const items: unknown[] = []
  items.push([items])
  return items
}

const throwing = (): never => {
  throw new Error('on purpose')
}

const NOTATION: Record<string, Make> = {
  $bytes: (content) => new Uint8Array(Buffer.from(String(content), 'base64')),
  $bigint: (content) => BigInt(String(content)),
  $number: Number,
  $undefined: () => undefined,
  $units: (content) => String.fromCharCode(...list(content).map((unit) => Number.parseInt(String(unit), 16))),
  $date: (content) => new Date(content === 'never' ? Number.NaN : String(content)),
  $repeat: (content) => {
    const [text, times] = list(content)
    return String(text).repeat(Number(times))
  },
  $nest: (content) => {
    let value: unknown[] = []
    for (let depth = 1; depth < Number(content); depth++) value = [value]
    return value
  },
  $parse: (content) => JSON.parse(String(content)),
  $entries: (content) => {
    const entries = list(content).map((entry): [string, unknown] => {
      const [key, value] = list(entry)
      return [String(revive(key)), revive(value)]
    })
    return Object.fromEntries(entries)
  },
  $holes: (content) => {
    const items: unknown[] = []
    for (const [index, item] of list(content).entries()) if (item !== null) items[index] = revive(item)
    return items
  },
  $toJSON: (content) => ({ toJSON: () => revive(content) }),
  $function: () => () => {},
  $symbol: () => Symbol('s'),
  $map: () => new Map(),
  $set: () => new Set(),
  $regexp: () => /x/,
  $promise: () => Promise.resolve(),
  $error: () => new Error('x'),
  $boxed: () => Object(1),
  $floats: () => new Float64Array(1),
  $buffer: () => new ArrayBuffer(1),
  $circular: circular,
  $circularList: circularList,
  $throwingGetter: () => Object.defineProperty({}, 'x', { get: throwing, enumerable: true }),
  $throwingToJSON: () => ({ toJSON: throwing }),
}

export function revive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revive)
  if (!isObject(value)) return value
  const entries = Object.entries(value)
  const [key = '', content] = entries[0] ?? []
  const make = entries.length === 1 && Object.hasOwn(NOTATION, key) ? NOTATION[key] : undefined
  if (make !== undefined) return make(content)
  if (key.startsWith('$')) throw new TypeError(`the notation has no ${key}`)
  return Object.fromEntries(entries.map(([name, item]) => [name, revive(item)]))
}
