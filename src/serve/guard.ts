/**
 * Which requests are served. With tokens: those with one of them. Without, the service is on loopback, and programs of this machine may
 * use it; but not pages in a browser of this machine, of whatever site:
 *
 *   Host     must name this machine, so that a site whose name is pointed here (DNS rebinding) gets nothing
 *   Origin   must be the service's own, and Sec-Fetch-Site must not contradict, so that pages of other sites cannot send anything
 *
 * There is no CORS, so a browser shows no answer to pages of another origin.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../web/problem.ts'

/** 16 characters of 64 are 96 bits, too many to be guessed. */
const SHORTEST_TOKEN = 16

/** @returns what is wrong with a token; undefined if nothing is */
export function tokenFault(token: string): string | undefined {
  if (token.length < SHORTEST_TOKEN) return `a token has ${SHORTEST_TOKEN} characters at least`
  if (token.length > 1024) return 'a token has 1,024 characters at most'
  return /^[\x21-\x7e]+$/.test(token) ? undefined : 'a token is made of visible ASCII characters'
}

export class Guard {
  /** Hashes, so that the time of a comparison tells nothing, not even the length. */
  readonly #tokens: readonly Buffer[]
  readonly #hosts: ReadonlySet<string>

  /** @param hosts further names that Host may have without tokens */
  constructor(tokens: readonly string[], hosts: readonly string[] = []) {
    this.#tokens = tokens.map(hashed)
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
  }

  /** @throws Refusal: 403 */
  checkOrigin(request: Request): void {
    const host = request.headers.get('host') ?? new URL(request.url).host
    if (this.#tokens.length === 0 && !this.#isOwn(host)) {
      throw new Refusal(403, 'The Host header does not name this machine.')
    }
    if (isForeign(request, host)) {
      throw new Refusal(403, 'Pages of other origins may not use this service.')
    }
  }

  /** Whether the request has a token, or needs none. */
  isAuthorized(request: Request): boolean {
    return this.#tokens.length === 0 || this.#isToken(request.headers.get('authorization'))
  }

  #isOwn(host: string): boolean {
    const name = host.toLowerCase().replace(/:\d{1,5}$/, '')
    return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name) || this.#hosts.has(name)
  }

  #isToken(authorization: string | null): boolean {
    const [, given] = /^Bearer +([\x21-\x7e]{1,1024}) *$/i.exec(authorization ?? '') ?? []
    const hash = hashed(given ?? '')
    let known = false
    // All are compared, so that the time does not tell which one matched.
    for (const token of this.#tokens) known = timingSafeEqual(token, hash) || known
    return known && given !== undefined
  }
}

function isForeign(request: Request, host: string): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return true
  const origin = request.headers.get('origin')
  if (origin === null) return false
  return !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase()
}

function hashed(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
