/** What was done, and by whom: the log of actions, of the queues that the caller may see. */

import { ACTIONS_QUEUE, keepsActions, keptAction } from '../pond/actions.ts'
import { internalsOf } from '../pond/internals.ts'
import { checkOptions, defined, isInteger } from '../values/options/options.ts'
import type { Call } from './context.ts'
import { isName, isText, SEARCH_TIME } from './reads.ts'
import type { ActionRow, ActionsPage } from './views.ts'

export async function actions(call: Call, body: object): Promise<ActionsPage> {
  type Body = { queue?: string; after?: string; limit?: number }
  const rules = { queue: isName, after: isText, limit: isInteger(1, 200) }
  const { queue, after: from, limit = 50 } = checkOptions<Body>(body as Body, rules, 'actions')
  const { store } = internalsOf(call.pond)
  if (!keepsActions(store)) return { actions: null, next: null, isPart: false }
  if (queue !== undefined) call.caller.sees(call.store, queue)
  const until = performance.now() + SEARCH_TIME
  const found: ActionRow[] = []
  const filter = defined({ group: queue })
  for (let after = from; ; ) {
    const page = await store.operations.list({
      ...{ queue: ACTIONS_QUEUE, state: 'done', limit: 200, filter },
      ...defined({ after }),
    })
    for (const record of page.jobs) {
      const action = keptAction(record)
      if (action === undefined || call.caller.may(call.store, action.queue) === undefined) continue
      found.push(action)
      if (found.length >= limit) return { actions: found, next: record.cursor, isPart: false }
    }
    after = page.next ?? undefined
    if (after === undefined) return { actions: found, next: null, isPart: false }
    if (performance.now() > until) return { actions: found, next: after, isPart: true }
  }
}
