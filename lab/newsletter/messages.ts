/** What the processes of a run tell the main one. */

export interface Outcome {
  email: string
  /** The status of the answer, or why there was none, such as ECONNREFUSED. */
  status: number | string
  /** From sending to the end of the answer. */
  ms: number
}

export type Message =
  /** Mails that wait to be sent, and mails under way, as the service sees it. */
  | { kind: 'backlog'; waiting: number; running: number }
  /** The worker found that jobs of a silent one are free again. */
  | { kind: 'returned'; count: number }
  | { kind: 'load'; sent: number; accepted: number; failed: number }
  /** The load is over. `behind`: how far behind its schedule the generator ever was, in ms. */
  | { kind: 'done'; outcomes: Outcome[]; behind: number }

const KINDS = ['backlog', 'returned', 'load', 'done']

/** Only our own children write to the channel: knowing the kind is enough. */
export function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && 'kind' in value && KINDS.includes(String(value.kind))
}

export function tell(message: Message): void {
  process.send?.(message)
}
