/** The way of a job through its states, with the times that the store has of it. */
import type { JobPage } from '../views.ts'
import { clock, duration } from './format.ts'
import { serverNow } from './live.ts'

interface Step {
  name: string
  kind: string
  /** null: not yet. */
  at: number | null
  text: string
  /** Milliseconds since the step before. */
  since?: number
}

export function stepsOf(job: JobPage, now: number): Step[] {
  const { state, pushedAt, dueAt, startedAt, finishedAt, attempt, attempts, worker, error } = job
  const steps: Step[] = [{ name: 'pushed', kind: 'past', at: pushedAt, text: '' }]
  for (const [number, at] of earlierAttempts(job)) {
    steps.push({ name: `attempt ${number}`, kind: 'failed', at, text: 'by its log' })
  }
  const isLater = dueAt > pushedAt + 1
  const isRetry = attempt > 0 && (state === 'waiting' || state === 'scheduled')
  // Of a job that waits for its next attempt, the last one comes before the due time.
  if (isRetry && startedAt !== null) {
    steps.push({
      name: `attempt ${attempt}`,
      kind: error ? 'failed' : 'past',
      at: startedAt,
      text: error ? `failed: ${error.code}` : `on ${worker}`,
    })
  }
  if (isLater && (startedAt === null || dueAt <= startedAt || isRetry)) {
    steps.push({
      name: 'due',
      kind: state === 'scheduled' ? 'now' : 'past',
      at: dueAt,
      text: dueAt > now ? `in ${duration(dueAt - now)}` : '',
    })
  }
  if (state === 'blocked')
    steps.push({ name: 'blocked', kind: 'now', at: null, text: `for ${duration(now - pushedAt)}` })
  if (isRetry || (startedAt === null && state === 'waiting')) {
    if (state === 'waiting')
      steps.push({ name: 'waiting', kind: 'now', at: null, text: `for ${duration(now - dueAt)}` })
  } else if (startedAt !== null) {
    const isNow = state === 'running'
    const text = isNow ? `for ${duration(now - startedAt)} on ${worker}` : worker === null ? '' : `on ${worker}`
    steps.push({ name: `attempt ${attempt} of ${attempts}`, kind: isNow ? 'now' : 'past', at: startedAt, text })
  }
  if (finishedAt !== null)
    steps.push({ name: state, kind: state, at: finishedAt, text: error && state === 'dead' ? error.code : '' })
  return steps.map((step, index) => {
    const before = steps[index - 1]?.at
    return step.at !== null && before != null && step.at >= before ? { ...step, since: step.at - before } : step
  })
}

/** Attempts before the last one, of which the store keeps nothing but their lines of the log: number and time of the first line. */
function earlierAttempts({ log, attempt }: JobPage): Map<number, number> {
  const found = new Map<number, number>()
  for (const line of log ?? []) {
    if (line.attempt === null || line.at === null || line.attempt >= attempt || found.has(line.attempt)) continue
    found.set(line.attempt, line.at)
  }
  return found
}

/** All states, and where the job is: so that the next one can be guessed. */
const AHEAD: Partial<Record<JobPage['state'], readonly string[]>> = {
  blocked: ['waiting', 'running', 'done'],
  scheduled: ['waiting', 'running', 'done'],
  waiting: ['running', 'done'],
  running: ['done'],
}

export const Timeline = ({ job }: { job: JobPage }) => (
  <ol class="timeline" aria-label="Timeline">
    {stepsOf(job, serverNow()).map(({ name, kind, at, text, since }) => (
      <li key={name} class={kind} aria-current={kind === 'now' ? 'step' : undefined}>
        <i aria-hidden="true" />
        <b>{name}</b>
        {at !== null && <time dateTime={new Date(at).toISOString()}>{clock(at)}</time>}
        <span class="mute">
          {since !== undefined && `+ ${duration(since)} `}
          {text}
        </span>
      </li>
    ))}
    {(AHEAD[job.state] ?? []).map((name) => (
      <li key={name} class="ahead">
        <i aria-hidden="true" />
        <b>{name}</b>
      </li>
    ))}
  </ol>
)
