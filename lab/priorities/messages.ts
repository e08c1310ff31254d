/** What is pushed, and what a consumer tells of it. */
import { holds } from '../child.ts'

export interface Message {
  kind: 'long' | 'urgent'
  /** Before the call of push, in ms of the machine's clock. */
  pushed: number
}

/** What became of a message. Times are those of the machine's clock, in ms. */
export interface Run extends Message {
  started: number
  /** Missing while it runs. */
  ended?: number
}

/** From a consumer, when asked: all that it has started until now. */
export interface Told {
  runs: Run[]
}

export const isTold = holds<Told>('runs')
