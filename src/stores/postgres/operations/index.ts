/** The operations, as contract/postgres/ has them. Each is refused once the store is closed, and waited for when it closes. */
import type { Operations } from '../../../store.ts'
import type { StoreContext } from '../context.ts'
import { bulk } from './bulk.ts'
import { cancel } from './cancel.ts'
import { claim } from './claim.ts'
import { configure, limitGroup, settings } from './configure.ts'
import { complete, fail, release } from './end.ts'
import { extend } from './extend.ts'
import { ahead, find, outcomes } from './find.ts'
import { entries, journal, signal } from './journal.ts'
import { groups, list } from './list.ts'
import { push } from './push.ts'
import { relatives } from './relatives.ts'
import { remove } from './remove.ts'
import { requeue } from './requeue.ts'
import { restore } from './restore.ts'
import { declare, fire, pauseSchedule, removeSchedule, schedules } from './schedules.ts'
import { record, stats } from './stats.ts'
import { sweep } from './sweep.ts'
import { update } from './update.ts'
import { heartbeat, workers } from './workers.ts'

export function operationsOf(context: StoreContext): Operations {
  const operation = <In, Out>(run: (context: StoreContext, input: In) => Promise<Out>) =>
    context.calls.operation((input: In) => run(context, input))
  return {
    configure: operation(configure),
    limitGroup: operation(limitGroup),
    settings: operation(settings),
    push: operation(push),
    claim: operation(claim),
    complete: operation(complete),
    fail: operation(fail),
    release: operation(release),
    extend: operation(extend),
    journal: operation(journal),
    entries: operation(entries),
    signal: operation(signal),
    sweep: operation(sweep),
    cancel: operation(cancel),
    update: operation(update),
    requeue: operation(requeue),
    remove: operation(remove),
    bulk: operation(bulk),
    restore: operation(restore),
    find: operation(find),
    outcomes: operation(outcomes),
    list: operation(list),
    groups: operation(groups),
    ahead: operation(ahead),
    relatives: operation(relatives),
    stats: operation(stats),
    record: operation(record),
    heartbeat: operation(heartbeat),
    workers: operation(workers),
    declare: operation(declare),
    schedules: operation(schedules),
    pauseSchedule: operation(pauseSchedule),
    removeSchedule: operation(removeSchedule),
    fire: operation(fire),
  }
}
