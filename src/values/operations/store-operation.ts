import type { OperationName } from '../../store.ts'

/** What subscribers of the channel `millpond:operation` get. It holds no ids, payloads or messages. */
export interface StoreOperation {
  /** The kind of the store: `memory`, `sqlite`, `redis` or `postgres`. */
  store: string
  name: OperationName
  /** null: the input names no queue, or several. */
  queue: string | null
  /** How many items the input has; of `claim` and `list`, how many jobs came back. null: neither, or it failed. */
  items: number | null
  /** Milliseconds until the answer, with fractions. */
  ms: number
  /** Of the error; `StoreFailed` for one that has no code. null: it succeeded. */
  code: string | null
}
