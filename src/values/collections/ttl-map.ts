/** Values kept for a moment: bounded in time, number and weight. When there is no room the oldest goes first. */

interface Entry<Value> {
  value: Value
  weight: number
  /** By `performance.now()`, which no change of the clock moves. */
  expires: number
}

export interface TtlMapLimits {
  /** In ms; at least 1. */
  ttl: number
  entries: number
  /** Most weight of all together. Without a limit unless given. */
  weight?: number
}

export class TtlMap<Value> {
  /** In the order in which they came. All live equally long, so that is also the order in which they expire. */
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #limits: TtlMapLimits
  #weight = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limits: TtlMapLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  get weight(): number {
    return this.#weight
  }

  keys(): Iterable<string> {
    return this.#entries.keys()
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    // A timer may be late; the answer must not be.
    if (entry.expires > performance.now()) return entry.value
    this.delete(key)
    return undefined
  }

  /** @param ttl a shorter life than that of the others, in ms */
  put(key: string, value: Value, weight = 0, ttl: number = this.#limits.ttl): void {
    this.delete(key)
    const limit = this.#limits.weight ?? Number.POSITIVE_INFINITY
    if (weight > limit) return
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#limits.entries && this.#weight + weight <= limit) break
      this.delete(oldest)
    }
    const expires = performance.now() + Math.min(ttl, this.#limits.ttl)
    this.#entries.set(key, { value, weight, expires })
    this.#weight += weight
    if (this.#timer === undefined) this.#sweepAfter(this.#limits.ttl)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#weight -= entry.weight
  }

  clear(): void {
    this.#entries.clear()
    this.#weight = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #sweepAfter(ms: number): void {
    const sweep = () => {
      this.#timer = undefined
      const now = performance.now()
      for (const [key, { expires }] of this.#entries) {
        if (expires > now) return this.#sweepAfter(Math.ceil(expires - now))
        this.delete(key)
      }
    }
    // What is kept must not keep a process alive.
    this.#timer = setTimeout(sweep, ms).unref()
  }
}
