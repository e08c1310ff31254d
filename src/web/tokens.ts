/** Tokens that requests show: what one looks like, and a comparison whose time tells nothing. */
import { createHash, timingSafeEqual } from 'node:crypto'

/** 16 characters of 64 are 96 bits, too many to be guessed. */
const SHORTEST_TOKEN = 16

/** @returns what is wrong with a token; undefined if nothing is */
export function tokenFault(token: string): string | undefined {
  if (token.length < SHORTEST_TOKEN) return `a token has ${SHORTEST_TOKEN} characters at least`
  if (token.length > 1024) return 'a token has 1,024 characters at most'
  return /^[\x21-\x7e]+$/.test(token) ? undefined : 'a token is made of visible ASCII characters'
}

/** The token of an `Authorization: Bearer` header; undefined if there is none. */
export function bearerToken({ headers }: Request): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,1024}) *$/i.exec(headers.get('authorization') ?? '')?.[1]
}

export class Tokens {
  /** Hashes, so that the time of a comparison tells nothing, not even the length. */
  readonly #hashes: readonly Buffer[]

  constructor(tokens: readonly string[]) {
    this.#hashes = tokens.map(hashed)
  }

  get size(): number {
    return this.#hashes.length
  }

  /** Which of the tokens it is; undefined if none. */
  indexOf(given: string | undefined): number | undefined {
    const hash = hashed(given ?? '')
    let found: number | undefined
    // All are compared, so that the time does not tell which one matched.
    for (const [index, token] of this.#hashes.entries()) if (timingSafeEqual(token, hash)) found = index
    return given === undefined ? undefined : found
  }
}

function hashed(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
