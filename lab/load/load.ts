/**
 * Loads a service from a process of its own, in a closed loop: with wrk where it is installed, since it leaves the server more of the CPU,
 * else with autocannon.
 */
import { autocannon } from './autocannon.ts'
import { hasWrk, wrk } from './wrk.ts'

/** Stands, once, in a body for a text that is another one in each request. */
export const ID = '[<id>]'

export interface Requests {
  /** GET unless given. */
  method?: string
  headers?: Record<string, string>
  /** None unless given; it may hold an `ID`. */
  body?: string
  connections: number
  seconds: number
}

export interface Load {
  /** Requests/s. */
  rate: number
  /** Milliseconds. */
  p50: number
  p95: number
  p99: number
  /** Not answered with 2xx, or not within 10 s. */
  failed: number
  /** Latencies in ms by their share, from the least to the greatest. */
  curve: [share: number, ms: number][]
}

export type Generate = (url: string, requests: Requests) => Promise<Load>

export const generator = hasWrk ? 'wrk, 1 thread' : 'autocannon (its p97.5 for p95)'
export const load: Generate = hasWrk ? wrk : autocannon
