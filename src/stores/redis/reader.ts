/** Reads a reply, which is MessagePack, value by value: its shape is known, so no lists are made only to be taken apart. */
import type { Encoded, JobError } from '../../store.ts'
import { NAME_BYTES, readId, readNamedId } from './ids.ts'
import { ENCODINGS } from './packer.ts'

function unexpected(head: number, wanted: string): never {
  throw new TypeError(`millpond: the server's reply held 0x${head.toString(16)} where ${wanted} was expected`)
}

export class Reader {
  readonly #buffer: Buffer
  #at = 0

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  #head(): number {
    return this.#buffer[this.#at++] ?? 0xc1
  }

  /** How many values follow as one list. */
  list(): number {
    const head = this.#head()
    if ((head & 0xf0) === 0x90) return head & 0x0f
    if (head === 0xdd) return this.#skip(4, this.#buffer.readUInt32BE(this.#at))
    if (head === 0xdc) return this.#skip(2, this.#buffer.readUInt16BE(this.#at))
    return unexpected(head, 'a list')
  }

  /** A number in so many bytes, without a head. */
  rawNumber(bytes: number): number {
    this.#at += bytes
    return this.#buffer.readUIntBE(this.#at - bytes, bytes)
  }

  /** The id of a name and the record behind it; the record is still to be read. */
  namedId(): string {
    this.#at += NAME_BYTES
    return readNamedId(this.#buffer, this.#at - NAME_BYTES)
  }

  skip(bytes: number): void {
    this.#at += bytes
  }

  /** Goes into a byte string, whose parts are then read. @returns where it ends, for `rawText` */
  inside(): number {
    const length = this.#length()
    return this.#at + length
  }

  /** Text up to the end of the byte string that it stands in. */
  rawText(end: number): string {
    const from = this.#at
    this.#at = end
    return this.#buffer.toString('utf8', from, end)
  }

  #skip(bytes: number, value: number): number {
    this.#at += bytes
    return value
  }

  /** Whether nothing is there; that is then read. */
  nil(): boolean {
    if (this.#buffer[this.#at] !== 0xc0) return false
    this.#at++
    return true
  }

  boolean(): boolean {
    const head = this.#head()
    return head === 0xc3 || (head !== 0xc2 && unexpected(head, 'a boolean'))
  }

  number(): number {
    const head = this.#head()
    if (head < 0x80) return head
    const buffer = this.#buffer
    const at = this.#at
    switch (head) {
      case 0xcc:
        return this.#skip(1, buffer.readUInt8(at))
      case 0xcd:
        return this.#skip(2, buffer.readUInt16BE(at))
      case 0xce:
        return this.#skip(4, buffer.readUInt32BE(at))
      case 0xcf:
      case 0xd3:
        return this.#skip(8, buffer.readUInt32BE(at) * 0x1_0000_0000 + buffer.readUInt32BE(at + 4))
      case 0xcb:
        return this.#skip(8, buffer.readDoubleBE(at))
      case 0xca:
        return this.#skip(4, buffer.readFloatBE(at))
      default:
        return unexpected(head, 'a number')
    }
  }

  /** A small number; null: something else is there, and still to be read. */
  numberOr(): number | null {
    return (this.#buffer[this.#at] ?? 0xc1) < 0x80 ? this.number() : null
  }

  /** null: false is there. */
  numberOrFalse(): number | null {
    if (this.#buffer[this.#at] !== 0xc2) return this.number()
    this.#at++
    return null
  }

  numberOrNull(): number | null {
    return this.nil() ? null : this.number()
  }

  /** The length of the text or the bytes that follow; where they begin is `#at`. */
  #length(): number {
    const head = this.#head()
    if ((head & 0xe0) === 0xa0) return head & 0x1f
    switch (head) {
      case 0xc4:
      case 0xd9:
        return this.#skip(1, this.#buffer.readUInt8(this.#at))
      case 0xc5:
      case 0xda:
        return this.#skip(2, this.#buffer.readUInt16BE(this.#at))
      case 0xc6:
      case 0xdb:
        return this.#skip(4, this.#buffer.readUInt32BE(this.#at))
      default:
        return unexpected(head, 'text or bytes')
    }
  }

  text(): string {
    const length = this.#length()
    const from = this.#at
    this.#at += length
    return this.#buffer.toString('utf8', from, this.#at)
  }

  textOrNull(): string | null {
    return this.nil() ? null : this.text()
  }

  /** A copy: a view would keep the whole reply in memory, and be the caller's to change. */
  bytes(): Uint8Array {
    const length = this.#length()
    const from = this.#at
    this.#at += length
    return new Uint8Array(this.#buffer.subarray(from, this.#at))
  }

  /** Without its head, as in a list of ids one after the other. */
  rawId(): string {
    const id = readId(this.#buffer, this.#at)
    this.#at += 16
    return id
  }

  id(): string {
    this.#length()
    return this.rawId()
  }

  /** Ids one after the other in one byte string. */
  ids(): string[] {
    const count = this.#length() / 16
    return Array.from({ length: count }, () => this.rawId())
  }

  encoded(): Encoded {
    const encoding = ENCODINGS[this.number()]
    if (encoding === undefined) return unexpected(this.#buffer[this.#at - 1] ?? 0, 'an encoding')
    return { encoding, body: encoding === 'json' ? this.text() : this.bytes() }
  }

  worker(): string | null {
    if (this.nil()) return null
    return this.#buffer[this.#at] === 0xc4 ? this.id() : this.text()
  }

  error(): JobError | null {
    if (this.nil()) return null
    const count = this.list()
    const error: JobError = { code: this.text(), name: this.text(), message: this.text() }
    if (count > 3) error.stack = this.text()
    return error
  }
}
