import type { Operations } from '../../../store.ts'
import type { MemoryState } from '../state.ts'
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

export function operationsOf(state: MemoryState): Operations {
  const on =
    <In, Out>(operation: (state: MemoryState, input: In) => Out | Promise<Out>) =>
    async (input: In): Promise<Out> => {
      state.assertOpen()
      const answer = operation(state, input)
      state.graph.settle()
      return answer
    }
  return {
    configure: on(configure),
    limitGroup: on(limitGroup),
    settings: on(settings),
    push: on(push),
    claim: on(claim),
    complete: on(complete),
    fail: on(fail),
    release: on(release),
    extend: on(extend),
    journal: on(journal),
    entries: on(entries),
    signal: on(signal),
    sweep: on(sweep),
    cancel: on(cancel),
    update: on(update),
    requeue: on(requeue),
    remove: on(remove),
    bulk: on(bulk),
    restore: on(restore),
    find: on(find),
    outcomes: on(outcomes),
    list: on(list),
    groups: on(groups),
    ahead: on(ahead),
    relatives: on(relatives),
    stats: on(stats),
    record: on(record),
    heartbeat: on(heartbeat),
    workers: on(workers),
    declare: on(declare),
    schedules: on(schedules),
    pauseSchedule: on(pauseSchedule),
    removeSchedule: on(removeSchedule),
    fire: on(fire),
  }
}
