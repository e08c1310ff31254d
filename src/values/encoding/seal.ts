/**
 * Seals payloads with AES-256-GCM, and opens them: `contract/seal.md`, `contract/vectors/seal.json`.
 *
 * A key of the caller seals nothing itself. Each process derives a key of its own from it and a random salt, so that it can count nonces:
 * a random nonce of 12 bytes would be safe for some billions of payloads only. WebCrypto would take five times as long.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { types } from 'node:util'
import { MillpondError } from '../errors/errors.ts'
import type { Encoded, Encoding, JobError } from '../jobs/records.ts'
import { shownName } from '../options/options.ts'
import { kindOf } from '../time/duration.ts'
import { isSealed, SEAL_MAGIC, sealKeyId } from './sealed-form.ts'

export interface SealKey {
  /** Stored with each payload, so that a reader knows which key to take: 1 to 64 of the characters `A–Z a–z 0–9 _ - . :`. */
  id: string
  /** 32 random bytes, or their base64, as `openssl rand -base64 32` prints. */
  key: Uint8Array | string
}

export interface SealOptions {
  /** The first one seals; the others only open what they sealed before. At least one. */
  keys: readonly SealKey[]
}

/** What a payload belongs to. Moved to another job or another part, it does not open. */
export interface SealPlace {
  part: 'data' | 'progress' | 'result' | 'error' | 'step'
  queue: string
  id: string
}

const SALT = 16
const NONCE = 12
const TAG = 16
const ENCODINGS: readonly Encoding[] = ['json', 'msgpack', 'bytes']
/** What stands before the base64 of a sealed error, in its message. */
const ERROR_PREFIX = 'millpond-sealed:'
/** Nonces of one derived key. */
const MAX_NONCES = 2 ** 32
/** Keys derived from other processes' salts that are remembered. */
const MAX_DERIVED = 1000

/** A derived key, and the beginning of all that it seals: magic, key id, salt. */
interface Sealing {
  key: KeyObject
  header: Uint8Array
  used: number
}

export class Sealer {
  readonly #keys: ReadonlyMap<string, KeyObject>
  readonly #current: { id: string; key: KeyObject }
  readonly #derived = new Map<string, KeyObject>()
  readonly #salt: () => Uint8Array
  #sealing: Sealing | undefined

  /** @param options `SealOptions`. @param salt makes 16 bytes that were never used before @throws InvalidOption; it shows no key */
  constructor(options: unknown, salt: () => Uint8Array = () => randomBytes(SALT)) {
    const keys = keysOf(options)
    const known = new Map<string, KeyObject>()
    for (const given of keys) {
      const { id, key } = checkedKey(given)
      if (known.has(id)) throw invalid(`two keys have the id "${id}"`)
      known.set(id, key)
    }
    const [first] = known
    if (first === undefined) throw invalid('keys is empty; give at least one')
    this.#keys = known
    this.#current = { id: first[0], key: first[1] }
    this.#salt = salt
  }

  seal({ encoding, body }: Encoded, place: SealPlace): Encoded {
    const { key, header, used } = this.#next()
    const plain = typeof body === 'string' ? Buffer.from(body) : body
    const sealed = Buffer.allocUnsafe(header.length + NONCE + 1 + plain.length + TAG)
    sealed.set(header)
    let at = header.length
    sealed.fill(0, at, at + NONCE)
    sealed.writeUInt32BE(used, at + NONCE - 4)
    const nonce = sealed.subarray(at, at + NONCE)
    at += NONCE
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(placeBytes(header, place))
    sealed[at] = ENCODINGS.indexOf(encoding)
    sealed.set(plain, at + 1)
    sealed.set(cipher.update(sealed.subarray(at, at + 1 + plain.length)), at)
    cipher.final()
    sealed.set(cipher.getAuthTag(), at + 1 + plain.length)
    return { encoding: 'bytes', body: sealed }
  }

  /** What is not sealed stays as it is. So does what cannot be opened: whoever decodes it gets `PayloadSealed`. */
  open(encoded: Encoded, place: SealPlace): Encoded {
    const { encoding, body } = encoded
    if (encoding !== 'bytes' || !isSealed(body)) return encoded
    return this.#opened(body, place) ?? encoded
  }

  /** Its code stays, for people and lists to tell errors apart. */
  sealError({ code, name, message, stack }: JobError, place: Omit<SealPlace, 'part'>): JobError {
    const body = JSON.stringify({ name, message, stack })
    const sealed = this.seal({ encoding: 'json', body }, { part: 'error', ...place })
    return { code, name: 'Sealed', message: ERROR_PREFIX + Buffer.from(sealed.body).toString('base64') }
  }

  openError(error: JobError, place: Omit<SealPlace, 'part'>): JobError {
    if (!error.message.startsWith(ERROR_PREFIX)) return error
    const sealed = Buffer.from(error.message.slice(ERROR_PREFIX.length), 'base64')
    const opened = isSealed(sealed) ? this.#opened(sealed, { part: 'error', ...place }) : undefined
    if (typeof opened?.body !== 'string') return error
    const { name, message, stack } = JSON.parse(opened.body)
    return {
      code: error.code,
      name: String(name),
      message: String(message),
      ...(typeof stack === 'string' && { stack }),
    }
  }

  /** Of a schedule. It differs with the key that seals, so that a new key seals the data anew, and tells nothing of the data. */
  version(plain: string): string {
    const bytes = hkdfSync('sha256', this.#current.key, '', `millpond schedule ${plain}`, 16)
    return Buffer.from(bytes).toString('hex')
  }

  #next(): Sealing {
    if (this.#sealing === undefined || this.#sealing.used === MAX_NONCES - 1) {
      const { id, key } = this.#current
      const salt = this.#salt()
      const header = Buffer.concat([SEAL_MAGIC, Buffer.from([id.length]), Buffer.from(id, 'latin1'), salt])
      this.#sealing = { key: derived(key, salt), header, used: -1 }
    }
    this.#sealing.used++
    return this.#sealing
  }

  #opened(body: Uint8Array, place: SealPlace): Encoded | undefined {
    const id = sealKeyId(body)
    const root = id === undefined ? undefined : this.#keys.get(id)
    if (id === undefined || root === undefined) return undefined
    const saltAt = SEAL_MAGIC.length + 1 + id.length
    const nonceAt = saltAt + SALT
    const from = nonceAt + NONCE
    const to = body.length - TAG
    if (to <= from) return undefined
    const key = this.#derive(id, root, body.subarray(saltAt, nonceAt))
    const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(nonceAt, from), { authTagLength: TAG })
    decipher.setAAD(placeBytes(body.subarray(0, nonceAt), place))
    decipher.setAuthTag(body.subarray(to))
    const plain = decipher.update(body.subarray(from, to))
    try {
      decipher.final()
    } catch {
      // Another key with the same id, another job, or bytes that were changed.
      return undefined
    }
    const encoding = ENCODINGS[plain[0] ?? ENCODINGS.length]
    if (encoding === undefined) return undefined
    const rest = plain.subarray(1)
    return { encoding, body: encoding === 'json' ? rest.toString() : new Uint8Array(rest) }
  }

  #derive(id: string, root: KeyObject, salt: Uint8Array): KeyObject {
    const name = `${id} ${Buffer.from(salt).toString('latin1')}`
    let key = this.#derived.get(name)
    if (key === undefined) {
      key = derived(root, salt)
      const [oldest] = this.#derived.keys()
      if (this.#derived.size >= MAX_DERIVED && oldest !== undefined) this.#derived.delete(oldest)
      this.#derived.set(name, key)
    }
    return key
  }
}

const derived = (key: KeyObject, salt: Uint8Array): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', key, salt, 'millpond seal 1', 32)))

const placeBytes = (header: Uint8Array, { part, queue, id }: SealPlace): Buffer =>
  Buffer.concat([header, Buffer.from(`${part}\n${queue}\n${id}`)])

function keysOf(options: unknown): readonly unknown[] {
  if (!isObject(options)) throw invalid(`takes an object with keys; got ${kindOf(options)}`)
  const unknown = Object.keys(options).find((name) => name !== 'keys')
  if (unknown !== undefined) throw invalid(`unknown option ${shownName(unknown)}; known is keys`)
  if (!Array.isArray(options.keys)) throw invalid(`keys must be an array; got ${kindOf(options.keys)}`)
  return options.keys
}

/** Not by checkOptions: its message might show the key. */
function checkedKey(given: unknown): { id: string; key: KeyObject } {
  if (!isObject(given)) throw invalid(`a key is an object with id and key; got ${kindOf(given)}`)
  const { id, key } = given
  if (!isKeyId(id)) throw invalid('the id of a key is 1 to 64 of the characters A–Z a–z 0–9 _ - . :')
  const bytes = keyBytes(key)
  if (bytes === undefined) throw invalid(`key "${id}" must be 32 bytes, or the base64 of 32 bytes`)
  return { id, key: createSecretKey(bytes) }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const isKeyId = (id: unknown): id is string => typeof id === 'string' && /^[\w.:-]{1,64}$/.test(id)

function keyBytes(key: unknown): Uint8Array | undefined {
  const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : key
  if (!types.isUint8Array(bytes) || bytes.length !== 32) return undefined
  // What is no base64 would be skipped without a word.
  const isText = typeof key !== 'string' || /^[A-Za-z0-9+/_-]{43}=?$/.test(key.trim())
  return isText ? bytes : undefined
}

const invalid = (reason: string) => new MillpondError('InvalidOption', `seal: ${reason}`)
