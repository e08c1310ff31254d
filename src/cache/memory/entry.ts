/**
 * A value in the process: as it is stored, and whatever was made of it so far. What is made once stays, so that a hit neither decodes
 * nor encodes anything.
 */
import type { Rendered } from '../ready-answer.ts'
import type { Seen } from '../redis/change-tracker.ts'
import type { Encoded, Lives } from '../redis/stored-value.ts'
import type { TagUse } from './tags.ts'

/** Bytes that an entry takes beside what it holds, with its place in the map. */
const ENTRY_OVERHEAD = 400

/** The forms that are made of a value when they are asked for. */
export interface Forms {
  value?: Promise<unknown>
  json?: Promise<Rendered>
  msgpack?: Promise<Rendered>
}

export interface EntryFacts extends Lives, Seen {
  key: string
  /** In Redis; empty: it is not there. */
  version: string
  /** Milliseconds since it was written. */
  age: number
  encoded: Encoded | undefined
  uses: readonly TagUse[]
}

export class Entry implements Seen {
  readonly key: string
  readonly version: string
  readonly encoded: Encoded | undefined
  readonly uses: readonly TagUse[]
  readonly forms: Forms = {}
  /** By `performance.now()`, as the other times. */
  readonly freshUntil: number
  readonly staleUntil: number
  readonly errorUntil: number
  /** The loader has failed and is not called again before. */
  retryAt = 0
  seenAt: number
  epoch: number
  suspect: boolean
  /** Invalidated: never to be answered again. */
  over = false
  /** Asked for since its memory last needed room. */
  used = false
  /** Its tags no longer count it. */
  released = false
  weight: number

  constructor({ key, version, encoded, uses, fresh, stale, error, age, seenAt, epoch, suspect }: EntryFacts) {
    this.key = key
    this.version = version
    this.encoded = encoded && compact(encoded)
    this.uses = uses
    this.freshUntil = seenAt - age + fresh
    this.staleUntil = this.freshUntil + stale
    this.errorUntil = this.freshUntil + Math.max(stale, error)
    this.seenAt = seenAt
    this.epoch = epoch
    this.suspect = suspect
    this.weight = ENTRY_OVERHEAD + 2 * key.length + (this.encoded?.body.length ?? 0) + 100 * uses.length
  }

  age(now: number): 'fresh' | 'stale' | 'old' {
    return now < this.freshUntil ? 'fresh' : now < this.staleUntil ? 'stale' : 'old'
  }

  /** Whether every tag still has the marker that the entry was stored with. undefined: the marker of one tag is not known. */
  tagged(isKnown: (use: TagUse) => boolean): boolean | undefined {
    let known: boolean | undefined = true
    for (const use of this.uses) {
      if (!isKnown(use)) known = undefined
      else if (use.tag.marker !== use.marker) return false
    }
    return known
  }
}

/** What comes from a socket, a compressor or a packer is often a small part of a large piece of memory, which it would hold. */
function compact(encoded: Encoded): Encoded {
  const { body } = encoded
  if (body.buffer.byteLength <= body.length * 1.25 + 64) return encoded
  const copy = Buffer.allocUnsafeSlow(body.length)
  body.copy(copy)
  return { ...encoded, body: copy }
}
