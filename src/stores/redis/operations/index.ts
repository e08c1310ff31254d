/** The operations: a line for each, as contract/operations.md has them. */
import type { Input, OperationName, Operations, Output } from '../../../store.ts'
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
  const of =
    <Name extends OperationName>(operation: (context: StoreContext, input: Input<Name>) => Promise<Output<Name>>) =>
    async (input: Input<Name>): Promise<Output<Name>> => {
      context.calls.assertOpen()
      return operation(context, input)
    }
  return {
    configure: of<'configure'>(configure),
    limitGroup: of<'limitGroup'>(limitGroup),
    settings: of<'settings'>(settings),
    push: of<'push'>(push),
    claim: of<'claim'>(claim),
    complete: of<'complete'>(complete),
    fail: of<'fail'>(fail),
    release: of<'release'>(release),
    extend: of<'extend'>(extend),
    journal: of<'journal'>(journal),
    entries: of<'entries'>(entries),
    signal: of<'signal'>(signal),
    sweep: of<'sweep'>(sweep),
    cancel: of<'cancel'>(cancel),
    update: of<'update'>(update),
    requeue: of<'requeue'>(requeue),
    remove: of<'remove'>(remove),
    bulk: of<'bulk'>(bulk),
    restore: of<'restore'>(restore),
    find: of<'find'>(find),
    outcomes: of<'outcomes'>(outcomes),
    list: of<'list'>(list),
    groups: of<'groups'>(groups),
    ahead: of<'ahead'>(ahead),
    relatives: of<'relatives'>(relatives),
    stats: of<'stats'>(stats),
    record: of<'record'>(record),
    heartbeat: of<'heartbeat'>(heartbeat),
    workers: of<'workers'>(workers),
    declare: of<'declare'>(declare),
    schedules: of<'schedules'>(schedules),
    pauseSchedule: of<'pauseSchedule'>(pauseSchedule),
    removeSchedule: of<'removeSchedule'>(removeSchedule),
    fire: of<'fire'>(fire),
  }
}
