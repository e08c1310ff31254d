/** Reads jobs by id. */
import type { Input } from '../../../store.ts'
import { NEVER, uniqueFrom } from '../../../values/jobs/once.ts'
import { JOB_STATES, type JobOutcome, type JobRecord, type JobState } from '../../../values/jobs/records.ts'
import { chunks, inChunks, MAX_ITEMS_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import {
  bytesIn,
  encodedIn,
  idBytes,
  idText,
  numberIn,
  recordIn,
  storedErrorIn,
  textIn,
  timeOrNull,
  unexpected,
} from '../wire.ts'

/** A job, and where it stands in lists. */
export interface Found {
  record: JobRecord
  place: number
  /** What its state is ordered by: when it got its place (waiting), is due (scheduled), loses its lease (running) or finished. */
  time: number
}

export function find(context: StoreContext, { ids }: Input<'find'>): Promise<(JobRecord | null)[]> {
  return inChunks(ids, async (some) => {
    const [left, ...items] = await callScript(context, 'find', { items: some.map(idBytes) })
    const byId = new Map(foundIn(items).map(({ record }) => [record.id, record]))
    return some.slice(0, some.length - numberIn(left)).map((id) => byId.get(id) ?? null)
  })
}

export async function outcomes(context: StoreContext, { ids }: Input<'outcomes'>): Promise<(JobOutcome | null)[]> {
  if (ids.length === 0) return []
  const some = ids.slice(0, MAX_ITEMS_PER_CALL)
  const answers = await callScript(context, 'outcomes', { items: some.map(idBytes) })
  return answers.map((answer, at) => (Array.isArray(answer) ? outcomeIn(some[at] ?? '', answer) : null))
}

function outcomeIn(id: string, answer: readonly unknown[]): JobOutcome {
  const [queue, state, attempt, attempts, error, result] = answer
  return {
    ...{ id, queue: textIn(queue), state: stateIn(state), attempt: numberIn(attempt), attempts: numberIn(attempts) },
    result: result === null ? null : encodedIn(bytesIn(result)),
    error: error === null ? null : storedErrorIn(bytesIn(error)),
  }
}

const PER_JOB = 14

/** As `described.lua` answers. */
export function foundIn(items: readonly unknown[]): Found[] {
  return chunks(items, PER_JOB).map(
    ([id, stateText, fence, attempt, due, started, end, worker, progress, error, result, kept, log, further]) => {
      const state = stateIn(stateText)
      const { place, placedAt, remember, ...rest } = recordIn(bytesIn(kept))
      // Of a follower, minus the time from which it may start.
      const follows = numberIn(due) < 0
      const dueAt = Math.abs(numberIn(due)) || rest.pushedAt
      const finished = numberIn(end)
      const record: JobRecord = {
        id: idText(bytesIn(id)),
        state,
        fence: numberIn(fence),
        attempt: numberIn(attempt),
        dueAt,
        startedAt: numberIn(started) || null,
        finishedAt: state === 'running' ? null : finished || null,
        worker: worker === null ? null : textIn(worker),
        progress: progress === null ? null : encodedIn(bytesIn(progress)),
        error: error === null ? null : storedErrorIn(bytesIn(error)),
        result: result === null ? null : encodedIn(bytesIn(result)),
        ...(log !== null && { log: textIn(log).split('\n') }),
        ...uniqueFrom(remember),
        ...(follows && { follows }),
        ...(further !== null && furtherIn(further)),
        ...rest,
      }
      return {
        record,
        place,
        time:
          state === 'waiting' || state === 'blocked'
            ? placedAt
            : state !== 'scheduled'
              ? finished
              : follows
                ? NEVER
                : Math.min(dueAt, NEVER - 1),
      }
    },
  )
}

/** What a job has that is blocked, or has steps. */
function furtherIn(further: unknown): Partial<JobRecord> {
  if (!Array.isArray(further)) throw unexpected(further, 'a list')
  const [waits, journal, parked] = further as readonly unknown[]
  return {
    ...(waits !== null && waitsIn(textIn(waits))),
    ...(journal !== null && { journal: numberIn(journal) }),
    ...(parked !== null && { parked: textIn(parked) }),
  }
}

/** Of a blocked job: `c` or `r`, and for how many it waits. */
const waitsIn = (text: string): Pick<JobRecord, 'waitsFor' | 'onDead'> => ({
  waitsFor: Number(text.slice(1)),
  ...(text.startsWith('r') && { onDead: 'run' as const }),
})

export function stateIn(value: unknown): JobState {
  const text = textIn(value)
  const state = JOB_STATES.find((known) => known === text)
  if (state === undefined) throw unexpected(value, 'a state')
  return state
}

export async function ahead(context: StoreContext, { id }: Input<'ahead'>): Promise<number | null> {
  const [count] = await callScript(context, 'ahead', { items: [idBytes(id)] })
  return timeOrNull(count)
}
