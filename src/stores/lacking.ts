/**
 * Refuses what a store lacks: contract/operations.md, "Capabilities". A store behind this checks nothing itself, and leaves the operations
 * out of its table that it lacks.
 */
import type { Capabilities, Input, OperationName, Operations, Store } from '../store.ts'
import type { NewJob } from '../values/jobs/records.ts'
import { lacking } from '../values/operations/capabilities.ts'
import type { JobFilter } from '../values/operations/requests.ts'
import { around } from './around.ts'

/** By capability, what asks for it, as callers know it; false: nothing does. */
type Asked = { [Name in keyof Capabilities]?: string | false }

const isGiven = (value: unknown): boolean => value !== undefined && value !== null
const hasOnce = ({ once }: NewJob): boolean => isGiven(once)
export const hasParents = ({ after = [], partOf }: NewJob): boolean => after.length > 0 || isGiven(partOf)
const isLater = ({ delay, runAt }: NewJob): boolean => delay > 0 || runAt !== null

const ASKED: { [Name in OperationName]?: (input: Input<Name>) => Asked } = {
  configure: ({ running, rate, grouped, groupRunning, groupRate, paused, by, clear }) => ({
    // What code gives, a store may take nevertheless: then it holds in its own process.
    settings: (isGiven(paused) || isGiven(clear) || by === 'operator') && "a pause or an operator's setting",
    limits: isGiven(running) && 'running',
    rates: isGiven(rate) && 'rate',
    groups: (isGiven(grouped) || isGiven(groupRunning) || isGiven(groupRate)) && 'a grouped queue',
  }),
  settings: () => ({ settings: 'settings' }),
  limitGroup: () => ({ groups: 'limitGroup' }),
  push: ({ jobs, whole = false }) => ({
    graphs: (whole && 'a push of all or none') || (jobs.some(hasParents) && 'a job that waits for others'),
    delays: jobs.some(isLater) && 'a job that is due later',
    priorities: jobs.some(({ priority }) => priority !== 4) && 'a priority',
    keys: jobs.some(({ key }) => key !== null) && 'a key',
    once: jobs.some(hasOnce) && 'a key that does more',
  }),
  claim: ({ minPriority = 0 }) => ({ priorities: minPriority > 0 && 'minPriority' }),
  release: ({ items }) => ({
    rates: items.some(({ pause = 0 }) => pause > 0) && 'a pause',
    steps: items.some(({ park }) => park !== undefined) && 'a job that waits in its handler',
  }),
  restore: ({ records }) => ({ restore: 'restore', keys: records.some(({ key }) => key !== null) && 'a key' }),
  cancel: () => ({ cancel: 'cancel' }),
  update: () => ({ update: 'update' }),
  requeue: () => ({ requeue: 'requeue' }),
  remove: () => ({ remove: 'remove' }),
  find: () => ({ find: 'find' }),
  outcomes: () => ({ find: 'outcomes' }),
  ahead: () => ({ find: 'ahead' }),
  list: ({ filter }) => ({ lists: 'list', text: byData(filter) }),
  bulk: ({ change: { kind }, filter }) => ({
    ...{ lists: 'bulk', [kind]: `a bulk ${kind}` },
    text: byData(filter),
  }),
  groups: () => ({ groups: 'groups' }),
  workers: () => ({ workers: 'workers' }),
}

function byData(filter: JobFilter | undefined): string | false {
  if (filter?.text !== undefined) return 'a filter by text'
  return filter?.data !== undefined && 'a filter by data'
}

/** What a store may leave out of its table. */
type Optional = Exclude<OperationName, Needed>
type Needed = 'push' | 'claim' | 'complete' | 'fail' | 'release' | 'extend' | 'sweep' | 'stats' | 'record' | 'heartbeat'
export type PartialOperations = Partial<Pick<Operations, Optional>> & Omit<Operations, Optional>

export function refusing(store: Omit<Store, 'operations'> & { operations: PartialOperations }): Store {
  const left = (name: keyof Capabilities, what: string) => (): Promise<never> =>
    Promise.reject(lacking(store, name, what))
  const operations: Operations = {
    ...{ configure: left('settings', 'configure'), settings: left('settings', 'settings') },
    ...{ limitGroup: left('groups', 'limitGroup'), groups: left('groups', 'groups'), list: left('lists', 'list') },
    ...{ cancel: left('cancel', 'cancel'), update: left('update', 'update'), requeue: left('requeue', 'requeue') },
    ...{ remove: left('remove', 'remove'), restore: left('restore', 'restore'), workers: left('workers', 'workers') },
    ...{
      find: left('find', 'find'),
      outcomes: left('find', 'outcomes'),
      ahead: left('find', 'ahead'),
      bulk: left('lists', 'bulk'),
    },
    ...{ declare: left('schedules', 'schedules'), schedules: left('schedules', 'schedules') },
    ...{ pauseSchedule: left('schedules', 'schedules'), removeSchedule: left('schedules', 'schedules') },
    ...{ journal: left('steps', 'steps'), entries: left('steps', 'steps'), signal: left('steps', 'signals') },
    ...{ fire: left('schedules', 'schedules'), relatives: left('graphs', 'relatives') },
    ...store.operations,
  }
  return around({ ...store, operations }, (name, input, next) => {
    for (const [capability, what] of Object.entries(ASKED[name]?.(input) ?? {})) {
      if (!what || !isCapability(store.capabilities, capability) || store.capabilities[capability]) continue
      return Promise.reject(lacking(store, capability, what))
    }
    return next(input)
  })
}

const isCapability = (known: Capabilities, name: string): name is keyof Capabilities => Object.hasOwn(known, name)
