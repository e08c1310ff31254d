/** What the operations of the API work with. */

import { ACTIONS_QUEUE } from '../pond/actions.ts'
import { internalsOf } from '../pond/internals.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { Refusal, refuseUnknownJob } from '../web/problem.ts'
import type { Redaction } from './redact.ts'
import { type Caller, unknownQueue } from './rights.ts'
import type { May } from './views.ts'

export interface Context {
  /** In the order that the page lists them. */
  ponds: ReadonlyMap<string, Millpond>
  redaction: Redaction
  /** Called after each action. */
  acted: (event: ActionEvent, pond: Millpond) => Promise<void>
}

/** A checked call of one operation. */
export class Call {
  readonly request: Request
  readonly caller: Caller
  readonly context: Context
  readonly store: string
  readonly pond: Millpond

  /** @throws Refusal: 404, there is no such store */
  constructor(request: Request, caller: Caller, context: Context, store: string | undefined) {
    const name = store ?? context.ponds.keys().next().value ?? ''
    const pond = context.ponds.get(name)
    if (pond === undefined) throw new Refusal(404, 'There is no such store.')
    this.request = request
    this.caller = caller
    this.context = context
    this.store = name
    this.pond = pond
  }

  /** A queue that exists, and that the caller may see. @throws Refusal: 404 */
  async seen(queue: string): Promise<May> {
    const may = this.caller.sees(this.store, queue)
    return (await isKnown(internalsOf(this.pond).store, queue)) ? may : unknownQueue()
  }

  /** The same, for a change. @throws Refusal: 403, 404 */
  async operated(queue: string): Promise<May> {
    const may = mustOperate(await this.seen(queue))
    mustNotBeLog(queue)
    return may
  }

  /** A job of a queue that the caller may see, as the store has it. @throws Refusal: 404 */
  async job(id: string) {
    const [record] = await internalsOf(this.pond).store.operations.find({ ids: [id] })
    const may = record && this.caller.may(this.store, record.queue)
    if (!record || may === null || may === undefined) return refuseUnknownJob()
    return { record, may }
  }

  /** Tells of an action, and keeps it in the store. */
  async acted(action: string, queue: string, more: Partial<ActionEvent> = {}): Promise<void> {
    const { who } = this.caller
    await this.context.acted({ who, through: 'dashboard', action, queue, count: 1, ...more }, this.pond)
  }
}

/** Who changes something cannot take the trace of it away here. @throws Refusal: 403 */
export function mustNotBeLog(queue: string): void {
  if (queue === ACTIONS_QUEUE) throw new Refusal(403, 'The log of actions is not changed here.')
}

/** By the settings, where the store has them: counts cost more. */
async function isKnown({ capabilities, operations }: Store, queue: string): Promise<boolean> {
  if (capabilities.settings) return (await operations.settings({ queue })) !== null
  return (await operations.stats({ queue, minutes: 0 })).length > 0
}

/** @throws Refusal: 403 */
export function mustOperate(may: May): May {
  if (!may.operate) throw new Refusal(403, 'You may look at this queue, and change nothing of it.')
  return may
}
