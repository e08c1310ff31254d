/**
 * How a browser stays signed in by a token: a cookie that scripts cannot read. It holds when it ends, and a signature with the token as the
 * key. So every process that has the token knows it, a token that is taken away ends it, and the token itself is not in it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

const NAME = 'millpond'
/** Milliseconds. */
const LASTS = 12 * 60 * 60_000
/** `END.SIGNATURE`. */
const FORM = new RegExp(`(?:^|;\\s*)${NAME}=(\\d{13})\\.([A-Za-z0-9_-]{43})(?:;|$)`)

/** @param base path of the page, with a slash at the end */
export function sessionCookie(token: string, request: Request, base: string): string {
  const end = String(Date.now() + LASTS)
  return cookie(`${end}.${signature(token, end).toString('base64url')}`, LASTS / 1000, request, base)
}

export const endedCookie = (request: Request, base: string): string => cookie('', 0, request, base)

/** Which of the tokens has signed the request's cookie; undefined if none. */
export function sessionOf(request: Request, tokens: readonly string[]): number | undefined {
  const [, end = '', signed = ''] = FORM.exec(request.headers.get('cookie') ?? '') ?? []
  if (end === '' || Number(end) < Date.now() || Number(end) > Date.now() + LASTS) return undefined
  const given = Buffer.from(signed, 'base64url')
  let found: number | undefined
  for (const [index, token] of tokens.entries()) {
    const right = signature(token, end)
    if (given.length === right.length && timingSafeEqual(given, right)) found = index
  }
  return found
}

const signature = (token: string, end: string): Buffer =>
  createHmac('sha256', token).update(`millpond dashboard ${end}`).digest()

function cookie(value: string, seconds: number, request: Request, base: string): string {
  const forwarded = request.headers.get('x-forwarded-proto') === 'https'
  const secure = forwarded || new URL(request.url).protocol === 'https:' ? '; Secure' : ''
  // In a path, these are letters as any other; in a cookie they end it.
  const path = base.replaceAll(/[;,]/g, encodeURIComponent)
  return `${NAME}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}
