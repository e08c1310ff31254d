/** Look-ups that are asked for in one turn, or while one is under way, go in one call: whoever waits for many jobs asks for each. */
import type { JobRecord } from '../../store.ts'
import type { Caller } from './caller.ts'
import { recordFrom } from './records.ts'
import { plainArray } from './wire.ts'

/** Records may be large. */
const MOST = 500

interface Entry extends PromiseWithResolvers<(JobRecord | null)[]> {
  ids: readonly string[]
}

export class Finder {
  readonly #caller: Caller
  #waiting: Entry[] = []
  #finding = false

  constructor(caller: Caller) {
    this.#caller = caller
  }

  find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    this.#caller.assertOpen()
    const entry: Entry = { ids, ...Promise.withResolvers<(JobRecord | null)[]>() }
    this.#waiting.push(entry)
    if (!this.#finding) {
      this.#finding = true
      queueMicrotask(() => this.#next())
    }
    // A store that closes waits for it, and lets it go first.
    return this.#caller.track(entry.promise)
  }

  #next(): void {
    let count = 0
    let taken = 0
    for (const { ids } of this.#waiting) {
      if (taken > 0 && count + ids.length > MOST) break
      count += ids.length
      taken++
    }
    const group = this.#waiting.splice(0, taken)
    if (group.length === 0) {
      this.#finding = false
      return
    }
    this.#look(group).then(
      () => this.#next(),
      (error: unknown) => {
        for (const { reject } of group) reject(error)
        this.#next()
      },
    )
  }

  async #look(group: readonly Entry[]): Promise<void> {
    const wanted = [...new Set(group.flatMap(({ ids }) => ids))]
    const rows = await this.#caller.rowsEvenClosing('find($1) as answer', [plainArray(wanted)])
    const answers = new Map(rows.map(({ answer }) => [recordFrom(answer).id, answer]))
    for (const { ids, resolve } of group) {
      // Each a copy of its own, also where two asked for the same job.
      resolve(
        ids.map((id) => {
          const answer = answers.get(id)
          return answer === undefined ? null : recordFrom(answer)
        }),
      )
    }
  }
}
