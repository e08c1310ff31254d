/**
 * The tags of what is in the process, with the marker that each had when it was last looked up. A tag that nothing here
 * has is forgotten.
 */
import type { Seen } from '../redis/change-tracker.ts'

export interface Tag extends Seen {
  readonly name: string
  /** undefined: not known at present. */
  marker: string | undefined
  /** How many values and loads have it. */
  uses: number
}

/** A value has the tag, and was stored under this marker. It is invalid when the tag has another one. */
export interface TagUse {
  readonly tag: Tag
  readonly marker: string
}

export class Tags {
  readonly #tags = new Map<string, Tag>()

  get size(): number {
    return this.#tags.size
  }

  /** To be given back. */
  take(name: string): Tag {
    const tag = this.#tags.get(name) ?? { name, marker: undefined, uses: 0, seenAt: 0, epoch: -1, suspect: false }
    tag.uses++
    this.#tags.set(name, tag)
    return tag
  }

  giveBack(tag: Tag): void {
    if (--tag.uses === 0) this.#tags.delete(tag.name)
  }

  get(name: string): Tag | undefined {
    return this.#tags.get(name)
  }

  values(): Iterable<Tag> {
    return this.#tags.values()
  }
}
