/** What the operations share. */
import type { Calls } from './connection/calls.ts'
import type { Notifier } from './notifier.ts'

export interface Context {
  readonly calls: Calls
  readonly notifier: Notifier
}
