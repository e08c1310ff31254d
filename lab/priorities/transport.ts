/** A queue as the service sees it. Each is one file in `transports/`. */
import type { Message } from './messages.ts'

export type Handler = (message: Message) => Promise<void>

export interface Producer {
  /** Resolves once the queue has the message. */
  push(message: Message, priority: number): Promise<unknown>
  close(): Promise<void>
}

export interface Transport {
  produce(url: string): Promise<Producer>
  /** Resolves when the handlers can be called, of this process at most `slots` at once. */
  consume(url: string, slots: number, handler: Handler): Promise<void>
}
