import type { Input } from '../../../store.ts'
import type {
  Declaration,
  DeclareOutcome,
  FireOutcome,
  Firing,
  ScheduleRecord,
} from '../../../values/schedules/records.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'
import { pushNow } from './push.ts'

export function declare(state: MemoryState, { schedules: declared }: Input<'declare'>): DeclareOutcome[] {
  const now = ORIGIN + state.now()
  return declared.map((each: Declaration) => state.schedules.declare(each, now))
}

export function schedules(state: MemoryState, { limit, after, name }: Input<'schedules'>): ScheduleRecord[] {
  return state.schedules.list(after, name, ORIGIN + state.now()).slice(0, limit)
}

export function pauseSchedule(state: MemoryState, { name, paused }: Input<'pauseSchedule'>): boolean {
  return state.schedules.pause(name, paused, ORIGIN + state.now())
}

export function removeSchedule(state: MemoryState, { name }: Input<'removeSchedule'>): boolean {
  return state.schedules.remove(name)
}

export function fire(state: MemoryState, { firings }: Input<'fire'>): FireOutcome[] {
  return firings.map((firing) => fireOne(state, firing))
}

function fireOne(state: MemoryState, firing: Firing): FireOutcome {
  const { jobs } = firing
  if (!state.schedules.isAt(firing)) return { status: 'stale' }
  const [first] = jobs
  if (first !== undefined && state.findOrCreate(first.queue).room < jobs.length) return { status: 'full' }
  state.schedules.fired(firing, ORIGIN + state.now())
  return { status: 'fired', jobs: pushNow(state, jobs) }
}
