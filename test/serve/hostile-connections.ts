/** Makes connections that try their luck: with bytes that are no HTTP, silence, more than anybody reads or waits for, and odd paths. */
import { connect } from 'node:net'
import { type Dice, hostile } from './hostile-requests.ts'

/** As often as they stand here. */
export const ATTACKS = ['broken bytes', 'half-open', 'slow readers', 'half-open', 'pipelining', 'paths'] as const
export type Kind = (typeof ATTACKS)[number]

/** What nobody may get at but by its own path, and what takes megabytes to list. */
export const SECRET = '/v1/queues/secret/jobs?state=waiting'
export const BIG = '/v1/queues/big/jobs?state=waiting&limit=100'

export interface Attack {
  kind: Kind
  /** How many requests it sends, the last of them perhaps in part. */
  requests: number
  /** Resolves when the server has ended its side, with the beginning of what was heard. The client keeps its own side open. */
  over: Promise<string>
  /** Makes a client that reads nothing read on, without which its end is not seen. */
  readOn(): void
  /** Makes the client close its side. */
  leave(): void
}

/** Bytes that are heard of and not kept. */
const HEARD = 256 * 1024

export function attack(kind: Kind, dice: Dice, origin: string): Attack {
  const { hostname, port } = new URL(origin)
  const requests = requestsOf(kind, dice)
  const bytes = Buffer.concat(requests)
  const at = dice.chance(3) ? dice.below(bytes.length) : bytes.length
  const { promise, resolve } = Promise.withResolvers<string>()
  let heard = ''
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => {
    socket.write(bytes.subarray(0, at))
    // The rest comes later, if its turn comes before the end.
    if (at < bytes.length) setImmediate(() => socket.write(bytes.subarray(at)))
  })
  const over = () => resolve(heard)
  socket.on('data', (chunk: Buffer) => {
    if (heard.length < HEARD) heard += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  socket.on('end', over).on('close', over)
  if (kind === 'slow readers') socket.pause()
  return {
    kind,
    requests: requests.length,
    over: promise,
    readOn: () => socket.resume(),
    leave: () => socket.destroy(),
  }
}

function requestsOf(kind: Kind, dice: Dice): Buffer[] {
  const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make)
  switch (kind) {
    case 'broken bytes':
      return [broken(dice)]
    case 'half-open': {
      const bytes = anyRequest(dice)
      // Most of them before the headers are over.
      return [bytes.subarray(0, dice.below(dice.chance(4) ? bytes.length : Math.min(bytes.length, 100)))]
    }
    case 'slow readers':
      return times(1 + dice.below(15), () => get(BIG))
    case 'pipelining':
      return times(2 + dice.below(dice.chance(4) ? 300 : 16), () => anyRequest(dice))
    case 'paths':
      return [get(spelt(dice), 'Connection: close')]
  }
}

function get(target: string, ...headers: string[]): Buffer {
  return Buffer.from([`GET ${target} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n'), 'latin1')
}

function anyRequest(dice: Dice): Buffer {
  const { method, path, headers, body } = hostile(dice, [])
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const length =
    dice.chance(3) || headers['content-length'] !== undefined ? '' : `content-length: ${body?.length ?? 0}\r\n`
  const target = path.replaceAll(' ', '%20')
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}${length}\r\n`, 'latin1')
  return Buffer.concat([head, body ?? Buffer.alloc(0)])
}

function broken(dice: Dice): Buffer {
  const bytes = anyRequest(dice)
  bytes[dice.below(Math.min(bytes.length, 300))] = dice.below(256)
  return bytes
}

const STEPS = [
  '/x/..',
  '/.',
  '/%2e',
  '/x/%2E%2e',
  '/x/.%2e',
  '/',
  '//',
  '/;',
  '/x\\..',
  '/%2f..',
  '/%252e%252e',
] as const
const TAILS = ['#', '#x', '/', '/.', '/..', ';x', '%00', '%20', '\t', '%09', '\\', '%5c', '%23', '%c0%ae'] as const

/** The path of the secret in another spelling. */
function spelt(dice: Dice): string {
  const [path = '', query = ''] = SECRET.split('?')
  const place = () => {
    const slashes = [...path.matchAll(/\//g)].map(({ index }) => index)
    return dice.pick(slashes)
  }
  const encoded = (text: string) => {
    return `%${text.charCodeAt(0).toString(16)[dice.chance(2) ? 'toUpperCase' : 'toLowerCase']()}`
  }
  const at = place()
  const letter = 1 + dice.below(path.length - 1)
  switch (dice.below(7)) {
    case 0:
      return `${path.slice(0, at)}${dice.pick(STEPS)}${path.slice(at)}?${query}`
    case 1:
      return `${path.slice(0, letter)}${encoded(path.charAt(letter))}${path.slice(letter + 1)}?${query}`
    case 2:
      return `${path.replaceAll(/[a-z]/g, (one) => (dice.chance(2) ? encoded(one) : one))}#?${query}`
    case 3:
      return `${path.slice(0, at)}\\${path.slice(at + 1)}?${query}`
    case 4:
      return `${path}${dice.pick(TAILS)}?${query}`
    case 5:
      return `${dice.pick(['http://localhost', 'HTTP://localhost', 'http://evil.example', 'http:', '//localhost'])}${SECRET}`
    default:
      return `${path.slice(0, letter)}${dice.pick(['\t', '%', '%0a', '\u00a0', '.', '/'])}${path.slice(letter)}?${query}`
  }
}
