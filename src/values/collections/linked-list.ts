/** A doubly linked list through its entries themselves: append, and removal from anywhere, cost the same at any length. */

/** What an entry carries of its list. */
export interface Linked<Entry extends Linked<Entry>> {
  prev: Entry | null
  next: Entry | null
  list: LinkedList<Entry> | null
}

export class LinkedList<Entry extends Linked<Entry>> {
  first: Entry | null = null
  last: Entry | null = null
  size = 0

  append(entry: Entry): void {
    this.insertAfter(this.last, entry)
  }

  /** `before` null: at the front. */
  insertAfter(before: Entry | null, entry: Entry): void {
    const after = before === null ? this.first : before.next
    entry.list = this
    entry.prev = before
    entry.next = after
    if (before === null) this.first = entry
    else before.next = entry
    if (after === null) this.last = entry
    else after.prev = entry
    this.size++
  }

  /** It must be in this list. */
  remove(entry: Entry): void {
    const { prev, next } = entry
    if (prev === null) this.first = next
    else prev.next = next
    if (next === null) this.last = prev
    else next.prev = prev
    // Links left in a removed entry would keep its whole neighbourhood from being collected.
    entry.prev = null
    entry.next = null
    entry.list = null
    this.size--
  }

  /** Takes all away. @returns them in order */
  clear(): Entry[] {
    const all = [...this]
    for (const entry of all) this.remove(entry)
    return all
  }

  /** In order. The list must not change meanwhile; copy it where it may. */
  *[Symbol.iterator](): Generator<Entry> {
    for (let entry = this.first; entry !== null; entry = entry.next) yield entry
  }
}
