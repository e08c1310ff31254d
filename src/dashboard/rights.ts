/** Who may do what with which queue. */
import { Refusal } from '../web/problem.ts'
import type { May } from './views.ts'

/**
 * For which queues a right holds: all or none; those with one of the names, in which `*` stands for any characters; or those for which
 * the function says true.
 */
export type Scope = boolean | readonly string[] | ((queue: string, store: string) => boolean)

/** What a caller may do. A queue that the caller may not view does not exist for the caller. */
export interface Rights {
  /** Who it is, for the log of actions. Unset: `unknown`. */
  who?: string | undefined
  /** See queues and jobs, without payloads. true unless set. */
  viewer?: Scope | undefined
  /** Change jobs and settings. false unless set. */
  operator?: Scope | undefined
  /** See data, progress, results, logs and the messages of errors, and search in them. false unless set. */
  payloads?: Scope | undefined
}

/** A caller with rights. */
export class Caller {
  readonly who: string
  /** By a cookie of the dashboard's own, which can be ended. */
  readonly isSession: boolean
  readonly #rights: Rights

  constructor(rights: Rights, isSession = false) {
    this.who = rights.who ?? 'unknown'
    this.isSession = isSession
    this.#rights = rights
  }

  /** @returns undefined: the queue does not exist for the caller */
  may(store: string, queue: string): May | undefined {
    const { viewer = true, operator = false, payloads = false } = this.#rights
    if (!holds(viewer, queue, store)) return undefined
    return { operate: holds(operator, queue, store), payloads: holds(payloads, queue, store) }
  }

  /** @throws Refusal: 404 */
  sees(store: string, queue: string): May {
    return this.may(store, queue) ?? unknownQueue()
  }
}

/** @throws Refusal: 404 */
export function unknownQueue(): never {
  throw new Refusal(404, 'There is no such queue.', { code: 'QueueUnknown' })
}

function holds(scope: Scope, queue: string, store: string): boolean {
  if (typeof scope === 'boolean') return scope
  if (typeof scope === 'function') return scope(queue, store) === true
  return scope.some((pattern) => matches(pattern, queue))
}

/** Without a regular expression: patterns with many stars would take it long. */
export function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  if (!name.startsWith(first)) return false
  const last = parts.pop()
  if (last === undefined) return name === first
  let from = first.length
  for (const part of parts) {
    const at = name.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}

/** What a hook or a token gives, checked: a misspelt right must not count as another one. */
export function isRights(value: unknown): value is Rights {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).every(([name, given]) => {
    if (given === undefined) return true
    if (name === 'who') return typeof given === 'string'
    return (name === 'viewer' || name === 'operator' || name === 'payloads') && isScope(given)
  })
}

const isScope = (value: unknown): value is Scope =>
  typeof value === 'boolean' ||
  typeof value === 'function' ||
  (Array.isArray(value) && value.every((one) => typeof one === 'string'))
