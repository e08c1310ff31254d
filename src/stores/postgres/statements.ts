/**
 * Names under which statements stay prepared on a connection: parsing and planning `select * from millpond.claim(…)` takes longer
 * than many a call. One name per text, the schema's name included, the same in every pond: several may share a caller's Pool.
 */
import { createHash } from 'node:crypto'
import { stateOf } from './errors.ts'

export class Statements {
  #names = new Map<string, string>()
  #generation = 0
  /** No names: connections are a pooler's. */
  off = false

  /** undefined: to be sent without a name. */
  nameOf(text: string): string | undefined {
    if (this.off) return undefined
    let name = this.#names.get(text)
    if (name === undefined) {
      const digest = createHash('sha256').update(text).digest('base64url').slice(0, 22)
      name = `millpond_${digest}_${this.#generation}`
      this.#names.set(text, name)
    }
    return name
  }

  /**
   * Whether the call failed, before it did anything, only because its statement was prepared: it can be made again at once.
   * 0A000: a newer version has changed what a function answers, so the statement must be prepared anew. 26000 and 42P05: it
   * is not there, or there already; someone has discarded it, or connections change under us, as behind a pooler.
   */
  refused(error: unknown): boolean {
    if (this.off) return false
    const state = stateOf(error)
    if (state === '0A000') {
      this.#names = new Map()
      this.#generation++
      return true
    }
    if (state !== '26000' && state !== '42P05') return false
    this.off = true
    return true
  }
}
