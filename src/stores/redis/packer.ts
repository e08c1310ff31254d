/**
 * Writes one MessagePack message. Ours, because a call is written value by value from the jobs as they are: a general
 * encoder would first need everything as lists, and cannot take in parts that are MessagePack already.
 */
import type { Encoded, JobError } from '../../store.ts'
import { ID_BYTES, isUuid, NAME_BYTES, writeId } from './ids.ts'

/** As stored: part of the layout. */
export const ENCODINGS = ['json', 'msgpack', 'bytes'] as const

/** Flags beside the priority, in a record's byte for its shape: part of the layout. */
export const SHAPE = { withKey: 16, plain: 32, apart: 64, wide: 128 } as const

const FIRST = 4096
/** Texts up to this long are written first and measured then. */
const SHORT = 1024

/** Bytes of the head of a text of so many bytes. */
const headOf = (bytes: number): number => (bytes < 32 ? 1 : bytes < 256 ? 2 : 3)

export class Packer {
  #buffer: Buffer = Buffer.allocUnsafe(FIRST)
  #at = 0

  /** The message so far; the packer begins anew. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#at)
    // What was taken may still be on its way out, so the rest of the buffer is used, and never its beginning.
    this.#buffer =
      this.#buffer.length - this.#at < FIRST ? Buffer.allocUnsafe(FIRST * 16) : this.#buffer.subarray(this.#at)
    this.#at = 0
    return taken
  }

  get length(): number {
    return this.#at
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }

  #byte(value: number): void {
    this.#buffer[this.#at++] = value
  }

  /** What follows are so many values of one list. */
  list(count: number): void {
    this.#room(5)
    if (count < 16) this.#byte(0x90 | count)
    else {
      this.#byte(0xdd)
      this.#at = this.#buffer.writeUInt32BE(count, this.#at)
    }
  }

  nil(): void {
    this.#room(1)
    this.#byte(0xc0)
  }

  boolean(value: boolean): void {
    this.#room(1)
    this.#byte(value ? 0xc3 : 0xc2)
  }

  /** A whole number; false where there is none. */
  number(value: number | null): void {
    this.#room(9)
    if (value === null) this.#byte(0xc2)
    else if (value >= 0 && value < 128) this.#byte(value)
    else if (value >= 0 && value <= 0xffff_ffff) {
      this.#byte(0xce)
      this.#at = this.#buffer.writeUInt32BE(value, this.#at)
    } else {
      this.#byte(0xcb)
      this.#at = this.#buffer.writeDoubleBE(value, this.#at)
    }
  }

  text(value: string): void {
    if (value.length <= SHORT) {
      this.#room(value.length * 3 + 5)
      // Written first and measured by that: nearly always it is as long in bytes as in characters.
      const head = headOf(value.length)
      let bytes = this.#buffer.write(value, this.#at + head)
      const needed = headOf(bytes)
      if (needed > head) bytes = this.#buffer.write(value, this.#at + needed)
      this.#head(bytes, needed)
      this.#at += bytes
      return
    }
    const bytes = Buffer.byteLength(value)
    this.#room(bytes + 5)
    this.#byte(0xdb)
    this.#at = this.#buffer.writeUInt32BE(bytes, this.#at)
    this.#at += this.#buffer.write(value, this.#at)
  }

  /** Without its head: its reader knows where it ends. */
  rawText(value: string): void {
    this.#room(value.length <= SHORT ? value.length * 3 : Buffer.byteLength(value))
    this.#at += this.#buffer.write(value, this.#at)
  }

  #head(bytes: number, head: number): void {
    if (head === 1) this.#byte(0xa0 | bytes)
    else if (head === 2) {
      this.#byte(0xd9)
      this.#byte(bytes)
    } else {
      this.#byte(0xda)
      this.#at = this.#buffer.writeUInt16BE(bytes, this.#at)
    }
  }

  bytes(value: Uint8Array): void {
    this.#binHead(value.byteLength)
    this.#buffer.set(value, this.#at)
    this.#at += value.byteLength
  }

  #binHead(bytes: number): void {
    this.#room(bytes + 5)
    if (bytes < 256) {
      this.#byte(0xc4)
      this.#byte(bytes)
    } else {
      this.#byte(0xc6)
      this.#at = this.#buffer.writeUInt32BE(bytes, this.#at)
    }
  }

  /** For a script: as a text, since Redis' own reader of MessagePack knows no byte strings, and takes texts as they are. */
  id(value: string): void {
    this.#room(ID_BYTES + 1)
    this.#byte(0xa0 | ID_BYTES)
    writeId(this.#buffer, this.#at, value)
    this.#at += ID_BYTES
  }

  /** What a job's record is found by, and its first 11 bytes, as two texts. @returns the time that the id begins with */
  nameAndStart(id: string, shape: number): number {
    this.#room(ID_BYTES + 8)
    const buffer = this.#buffer
    const name = this.#at
    const start = name + NAME_BYTES + 1
    const end = start + 1 + ID_BYTES - NAME_BYTES
    writeId(buffer, start + 1, id)
    buffer.copyWithin(name + 1, end, end + NAME_BYTES)
    buffer[name] = 0xa0 | NAME_BYTES
    buffer[start] = 0xa0 | (end - start)
    buffer[end] = shape
    this.#at = end + 1
    return buffer.readUIntBE(start + 1, 6)
  }

  /** Leaves room for so many numbers. @returns where, for `fill` */
  later(count: number): number {
    this.#room(count * 9)
    this.#at += count * 9
    return this.#at - count * 9
  }

  fill(at: number, numbers: readonly number[]): void {
    for (const [i, number] of numbers.entries()) {
      this.#buffer[at + i * 9] = 0xcb
      this.#buffer.writeDoubleBE(number, at + i * 9 + 1)
    }
  }

  /** A number as four bytes, for a script as a text. */
  fourBytes(value: number): void {
    this.#room(5)
    this.#byte(0xa4)
    this.#at = this.#buffer.writeUInt32BE(value, this.#at)
  }

  /** MessagePack as it is. */
  raw(value: Uint8Array): void {
    this.#room(value.byteLength)
    this.#buffer.set(value, this.#at)
    this.#at += value.byteLength
  }

  /** Whatever is written meanwhile, for a script as one text that it need not look into. */
  nested(write: () => void): void {
    this.#room(5)
    const start = this.#at
    this.#at += 5
    write()
    const bytes = this.#at - start - 5
    this.#buffer[start] = 0xdb
    this.#buffer.writeUInt32BE(bytes, start + 1)
  }

  encoded({ encoding, body }: Encoded): void {
    this.number(ENCODINGS.indexOf(encoding))
    if (typeof body === 'string') this.text(body)
    else this.bytes(body)
  }

  /** A worker's id is mostly a UUID, and kept with every job that it ran: 16 bytes then, else text. */
  worker(value: string): void {
    if (!isUuid(value)) {
      this.text(value)
      return
    }
    this.#binHead(ID_BYTES)
    writeId(this.#buffer, this.#at, value)
    this.#at += ID_BYTES
  }

  error({ code, name, message, stack }: JobError): void {
    this.list(stack === undefined ? 3 : 4)
    this.text(code)
    this.text(name)
    this.text(message)
    if (stack !== undefined) this.text(stack)
  }
}
