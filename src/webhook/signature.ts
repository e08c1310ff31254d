/**
 * Standard Webhooks, version 1.0.0 (https://www.standardwebhooks.com): HMAC-SHA256 over `{id}.{timestamp}.{body}`.
 */
import { createHmac } from 'node:crypto'

/** Bytes of a key, by the specification. */
const SHORTEST = 24
const LONGEST = 64
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/** The key of a secret `whsec_BASE64`; undefined if the secret is malformed or its key is not 24 to 64 bytes long. */
export function signingKey(secret: string): Buffer | undefined {
  const [, text] = SECRET.exec(secret) ?? []
  if (text === undefined) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length >= SHORTEST && key.length <= LONGEST ? key : undefined
}

/**
 * @param keys one signature each: while a secret is changed, receivers may know either
 * @param seconds since 1970, of this attempt
 */
export function signatureHeaders(keys: readonly Buffer[], id: string, seconds: number, body: string | Uint8Array) {
  const signatures = keys.map((key) => {
    const hmac = createHmac('sha256', key).update(`${id}.${seconds}.`).update(body)
    return `v1,${hmac.digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') }
}
