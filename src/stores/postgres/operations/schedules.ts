import type { Input } from '../../../store.ts'
import type { DeclareOutcome, FireOutcome, ScheduleRecord } from '../../../values/schedules/records.ts'
import type { StoreContext } from '../context.ts'
import { jobsText, outcomeFrom, tagged, untagged } from '../wire.ts'

/** A record whose job has its data as a tagged text. */
export type SentSchedule = Omit<ScheduleRecord, 'job'> & { job: Omit<ScheduleRecord['job'], 'data'> & { data: string } }

type Fired = { status: 'fired'; jobs: string[] } | { status: 'stale' | 'full' }

export async function declare(context: StoreContext, { schedules }: Input<'declare'>): Promise<DeclareOutcome[]> {
  if (schedules.length === 0) return []
  const items = schedules.map((each) => ({ ...each, job: { ...each.job, data: tagged(each.job.data) } }))
  return context.apart(items, {
    sent: (some) => ['declare_schedules($1, $2)', [JSON.stringify(some), context.calls.now()]],
    read: (answer: DeclareOutcome[]) => answer,
  })
}

export async function schedules(
  { calls }: StoreContext,
  { limit, after, name }: Input<'schedules'>,
): Promise<ScheduleRecord[]> {
  const values = [limit, after ?? null, name ?? null, calls.now()]
  return (await calls.answers<SentSchedule>('list_schedules($1, $2, $3, $4)', values)).map(scheduleFrom)
}

export async function pauseSchedule(context: StoreContext, { name, paused }: Input<'pauseSchedule'>): Promise<boolean> {
  return context.one<boolean>('pause_schedule($1, $2, $3)', [name, paused, context.calls.now()])
}

export async function removeSchedule(context: StoreContext, { name }: Input<'removeSchedule'>): Promise<boolean> {
  return context.one<boolean>('remove_schedule($1)', [name])
}

export async function fire({ calls, notifier }: StoreContext, { firings }: Input<'fire'>): Promise<FireOutcome[]> {
  if (firings.length === 0) return []
  notifier.stir()
  const sent = firings.map(({ jobs, ...firing }) => ({ ...firing, jobs: JSON.parse(jobsText(jobs)) }))
  const outcomes = await calls.shared<Fired[]>('fire($1, $2)', [JSON.stringify(sent), calls.now()])
  const queues = firings.flatMap(({ jobs }, at) =>
    outcomes[at]?.status === 'fired' ? jobs.map(({ queue }) => queue) : [],
  )
  for (const queue of new Set(queues)) notifier.bells.ring('work', queue)
  return outcomes.map((each) => (each.status === 'fired' ? { ...each, jobs: each.jobs.map(outcomeFrom) } : each))
}

export const scheduleFrom = (sent: SentSchedule): ScheduleRecord => ({
  ...sent,
  job: { ...sent.job, data: untagged(sent.job.data) },
})
