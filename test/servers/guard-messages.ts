/** What a process and its guard say to each other. */

import type { Account } from './account.ts'

export interface Launch {
  /** Chosen by the process that asks: process ids are used again, this is not. */
  id: number
  command: string
  args: readonly string[]
  folder: string
  /** Where its output is appended. */
  log: string
  /** Ends it at once without leaving anything behind, such as shared memory or children of its own. */
  drop: NodeJS.Signals
  account?: Account | undefined
}

export type Order =
  | { kind: 'folder'; account?: Account | undefined }
  | { kind: 'remove'; folder: string }
  | { kind: 'start'; launch: Launch }
  | { kind: 'signal'; id: number; signal: NodeJS.Signals }
  | { kind: 'drop'; id: number }

/** An order with the number that its answer will bear. */
export interface Ask {
  ask: number
  order: Order
}

export type Notice = { answer: number; value?: string | number } | { answer: number; error: string } | Ended

export interface Ended {
  /** The launch's id. */
  ended: number
  how: string
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

export const isAsk = (value: unknown): value is Ask => isObject(value) && 'ask' in value && 'order' in value

export const isNotice = (value: unknown): value is Notice => isObject(value) && ('answer' in value || 'ended' in value)
