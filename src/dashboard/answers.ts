/** Answers of the dashboard, and the headers that all of them have. */
import { jsonText } from '../web/answer.ts'

/**
 * The page may load its own files and nothing else, run no script but its own, and be in no frame. Nothing of it is kept by a cache or told
 * to another site.
 */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  ].join('; '),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
}

/** The same answer with the headers. */
export function guarded(response: Response): Response {
  const headers = new Headers(response.headers)
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value)
  const { status, statusText } = response
  return new Response(response.body, { status, statusText, headers })
}

export function fileAnswer(name: string, text: string): Response {
  const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream'
  const bytes = Buffer.from(text)
  return new Response(bytes, { headers: { 'content-type': type, 'content-length': String(bytes.length) } })
}

export function jsonAnswer(body: object, headers: Record<string, string> = {}): Response {
  const bytes = Buffer.from(jsonText(body))
  const always = { 'content-type': 'application/json', 'content-length': String(bytes.length) }
  return new Response(bytes, { headers: { ...always, ...headers } })
}
