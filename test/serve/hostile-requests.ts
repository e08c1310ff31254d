/** Makes requests that try their luck: some good, most of them broken somewhere. The same seed makes the same ones. */
import { Packr } from 'msgpackr'

export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below `most` (mulberry32). */
  below(most: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * most)
  }

  /** One time in `often`. */
  chance(often: number): boolean {
    return this.below(often) === 0
  }

  pick<T>(list: readonly T[]): T {
    const item = list[this.below(list.length)]
    if (item === undefined) throw new Error('an empty list')
    return item
  }
}

export interface Hostile {
  method: string
  path: string
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer> | undefined
}

const packr = new Packr({ useRecords: false })
const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'
const GOOD: readonly [method: string, path: string, body?: unknown][] = [
  ['POST', '/v1/queues/{q}/jobs', { data: { a: [1, 'x', null] }, priority: 5 }],
  ['POST', '/v1/queues/{q}/jobs', { data: 'x', key: 'k', delay: 5, attempts: 2, timeout: 100, group: 'g' }],
  ['POST', '/v1/queues/{q}/batches', { jobs: [{ data: 1 }, { data: 2, runAt: '2020-01-01T00:00:00Z' }] }],
  ['POST', '/v1/queues/{q}/claims', { limit: 3, worker: 'w', lease: 1000 }],
  ['POST', '/v1/queues/{q}/jobs/{id}/complete', { fence: 1, result: { ok: true } }],
  ['POST', '/v1/queues/{q}/jobs/{id}/fail', { fence: 1, error: { name: 'E', message: 'm', stack: 's' }, retry: 5 }],
  ['POST', '/v1/queues/{q}/jobs/{id}/fail', { fence: 2, retry: false }],
  ['POST', '/v1/queues/{q}/jobs/{id}/release', { fence: 1 }],
  ['POST', '/v1/queues/{q}/jobs/{id}/extend', { fence: 1, progress: 0.5, lease: 1000 }],
  ['POST', '/v1/queues/{q}/settle', { complete: [{ id: UNKNOWN, fence: 1 }], fail: [], release: [] }],
  ['POST', '/v1/queues/{q}/requeue'],
  ['POST', '/v1/queues/{q}/changes', { action: 'requeue', state: 'dead', errorText: 'm', limit: 5 }],
  ['POST', '/v1/queues/{q}/changes', { action: 'cancel', dryRun: true, key: 'k', after: '1~waiting' }],
  ['POST', '/v1/jobs/{id}/requeue'],
  ['GET', '/v1/jobs/{id}'],
  ['DELETE', '/v1/jobs/{id}'],
  ['GET', '/v1/queues'],
  ['GET', '/v1/queues/{q}?minutes=5'],
  ['GET', '/v1/queues/{q}/jobs?state=dead&limit=5&after={id}'],
  ['PATCH', '/v1/queues/{q}', { paused: false, keepDone: 1000 }],
  ['GET', '/healthz'],
  ['GET', '/openapi.json'],
]
const QUEUES = ['q', 'a', 'a%2Fb', 'x.y:z'] as const
const NAMES = [
  '..',
  '.',
  '%2e%2e',
  '%2e%2e%2f%2e%2e%2fetc',
  '%00',
  '%ff',
  '%',
  '%zz',
  'ü',
  '%F0%9F%A6%86',
  '',
  ' ',
  ';',
  '{queue}',
  '__proto__',
  'constructor',
  "'--",
  '%0d%0aX:1',
  `${'x'.repeat(300)}`,
] as const
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'HEAD', 'PUT', 'OPTIONS', 'BREW', 'get', 'PROPFIND'] as const
const TYPES = [
  'application/json',
  'application/msgpack',
  'application/x-msgpack',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/problem+json',
  'a/b/c',
  '',
] as const
const HEADERS: Readonly<Record<string, readonly string[]>> = {
  accept: [
    '*/*',
    'application/msgpack',
    'text/html',
    'text/event-stream',
    'application/json;q=0',
    ',,;;',
    'x'.repeat(5000),
  ],
  prefer: [
    'wait=1',
    'wait=0',
    'wait=-1',
    'wait=999999999',
    'wait=99999999999999',
    'wait="1"',
    'wait',
    'respond-async',
    ',',
  ],
  'idempotency-key': ['a', '"a b"', '', '"', 'ü', 'x'.repeat(300), 'a,b', '"\\""'],
  'if-none-match': ['*', 'W/"x"', '"', ',,,'],
  'last-event-id': ['last', 'x'],
  traceparent: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00-0', 'ff-x', ''],
  'content-encoding': ['gzip', 'identity', 'br, gzip'],
  'content-length': ['-1', '1e9', '999999999999', 'x', '0'],
  'transfer-encoding': ['chunked', 'gzip, chunked'],
  authorization: ['Bearer x', 'Basic !!!', ''],
  origin: ['null', 'http://evil.example', 'http://localhost', ':'],
  host: ['localhost', 'evil.example', '', '127.0.0.1:99999', 'localhost:x', '[::1]'],
  'sec-fetch-site': ['cross-site', 'none', 'same-origin'],
  'x-http-method-override': ['DELETE'],
  expect: ['100-continue'],
}
const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53,
  '',
  'x',
  '\0',
  '\ud800',
  'x'.repeat(2000),
  [],
  {},
  [[[]]],
  { a: { b: 1 } },
  Array(1200).fill(0),
  UNKNOWN,
  '9999-99-99T99:99:99Z',
  '30s',
]

/** @param ids of jobs that there are */
export function hostile(dice: Dice, ids: readonly string[]): Hostile {
  const [goodMethod, template, value] = dice.pick(GOOD)
  const method = dice.chance(8) ? dice.pick(METHODS) : goodMethod
  const queue = () => (dice.chance(8) ? dice.pick(NAMES) : dice.pick(QUEUES))
  const id = () => (dice.chance(8) ? dice.pick(NAMES) : ids.length === 0 || dice.chance(6) ? UNKNOWN : dice.pick(ids))
  const path = tricked(dice, template.replace('{q}', queue).replace('{id}', id))
  const type = dice.chance(6) ? dice.pick(TYPES) : dice.chance(3) ? 'application/msgpack' : 'application/json'
  const headers: Record<string, string> = {}
  for (const [name, values] of Object.entries(HEADERS)) if (dice.chance(12)) headers[name] = dice.pick(values)
  const hasBody = value !== undefined && method !== 'GET' && method !== 'HEAD' && method !== 'get'
  if (hasBody || dice.chance(10)) headers['content-type'] = type
  return { method, path, headers, body: hasBody ? bodyOf(dice, value, type.includes('msgpack')) : undefined }
}

function tricked(dice: Dice, path: string): string {
  switch (dice.below(40)) {
    case 0:
      return `/${path}`
    case 1:
      return `${path}/`
    case 2:
      return `/x/..${path}`
    case 3:
      return `${path}?${'a=1&'.repeat(500)}`
    case 4:
      return `${path}${path.includes('?') ? '&' : '?'}${dice.pick(NAMES)}=${dice.pick(NAMES)}`
    case 5:
      return path.replaceAll('/', '\\')
    case 6:
      return path.replaceAll('/', '%2F')
    case 7:
      return path.toUpperCase()
    case 8:
      return `/${dice.pick(NAMES)}`
    case 9:
      return `${path}#x`
    default:
      return path
  }
}

function bodyOf(dice: Dice, value: unknown, packed: boolean): Uint8Array<ArrayBuffer> {
  const changed = dice.chance(2) ? value : mutated(dice, value)
  switch (dice.below(12)) {
    case 0:
      return Uint8Array.from({ length: dice.below(200) }, () => dice.below(256))
    case 1:
      return new Uint8Array(Buffer.from('['.repeat(1 + dice.below(50_000))))
    case 2:
      return new Uint8Array(Buffer.from(`${'{"data":'.repeat(1 + dice.below(5000))}1`))
    // Heads that claim more than there is, one within another.
    case 3:
      return new Uint8Array(
        Array.from({ length: 1 + dice.below(50) }, () => [
          dice.pick([0xdd, 0xdf, 0xc6, 0xdb]),
          1,
          255,
          255,
          255,
        ]).flat(),
      )
    case 4:
      return new Uint8Array(dice.below(100_000)).fill(dice.pick([0x91, 0x81, 0xc1, 0x20, 0xff]))
    case 5:
      return new Uint8Array(Buffer.from('{"data":{"__proto__":{"x":1}},"constructor":{"prototype":{"x":1}}}'))
    default:
      break
  }
  const bytes = new Uint8Array(packed ? packr.pack(changed) : Buffer.from(JSON.stringify(changed)))
  if (dice.chance(4) && bytes.length > 0) {
    if (dice.chance(2)) return bytes.slice(0, dice.below(bytes.length))
    bytes[dice.below(bytes.length)] = dice.below(256)
  }
  return bytes
}

function mutated(dice: Dice, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || dice.chance(5)) return dice.pick(VALUES)
  const copy: Record<string, unknown> = { ...value }
  const names = Object.keys(copy)
  if (names.length === 0 || dice.chance(5))
    copy[dice.pick(['extra', 'data', 'fence', 'toString', 'limit'])] = dice.pick(VALUES)
  else {
    const name = dice.pick(names)
    if (dice.chance(4)) delete copy[name]
    else copy[name] = mutated(dice, copy[name])
  }
  return copy
}
