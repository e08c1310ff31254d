/**
 * Who may ask. With a token, whoever has it. Without, the service is on loopback, where programs of this machine may; but pages in a
 * browser of this machine may not, whatever site they are of:
 *
 *   Host     must name this machine, so that a site which has its name point here (DNS rebinding) gets nothing
 *   Origin   must be the service's own, and Sec-Fetch-Site must not say otherwise, so that other sites' pages cannot send anything
 *
 * There is no CORS, so a browser shows no page of another origin what was answered.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../web/problem.ts'

/** Answers to be guessed at leisure are none: 16 characters of 64 are 96 bits. */
const SHORTEST = 16
const TOKEN = /^[\x21-\x7e]+$/

/** @returns what is wrong with a token; undefined if nothing is */
export function tokenFault(token: string): string | undefined {
  if (token.length < SHORTEST) return `a token has ${SHORTEST} characters at least`
  if (token.length > 1024) return 'a token has 1,024 characters at most'
  return TOKEN.test(token) ? undefined : 'a token is made of visible ASCII characters'
}

export class Guard {
  /** Hashes, so that comparing takes as long whatever is wrong, the length too. */
  readonly #tokens: readonly Buffer[]
  readonly #hosts: ReadonlySet<string>

  /** @param hosts further names that Host may have where there is no token */
  constructor(tokens: readonly string[], hosts: readonly string[] = []) {
    this.#tokens = tokens.map(hashed)
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
  }

  /** @throws Refusal: 403 */
  checkOrigin(request: Request): void {
    const host = request.headers.get('host') ?? new URL(request.url).host
    if (this.#tokens.length === 0 && !this.#isOwn(host)) {
      throw new Refusal({ status: 403, detail: 'The Host header does not name this machine.' })
    }
    if (isForeign(request, host)) {
      throw new Refusal({ status: 403, detail: 'Pages of other origins may not use this service.' })
    }
  }

  /** Whether the request has a token, or there is none to have. */
  knows(request: Request): boolean {
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
    // All are compared, so that the time does not tell which one came close.
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
