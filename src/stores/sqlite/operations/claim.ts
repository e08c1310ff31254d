import type { Claimed, ClaimRequest } from '../../../store.ts'
import { integer, integerOrNull, text } from '../connection/values.ts'
import { type Context, DEFAULT_LEASE } from '../queues.ts'
import type { PackedClaims } from '../wire.ts'

type PackedClaim = Omit<Claimed, 'jobs'> & PackedClaims

const NOTHING: PackedClaims = { jobs: '[]', data: [] }

export function claim(context: Context, { queue: name, worker, limit, lease: asked }: ClaimRequest): PackedClaim {
  const { statements, queues, fenceFloor, now } = context
  const queue = queues.find(name)
  const lease = asked ?? queue?.settings.lease ?? DEFAULT_LEASE
  if (queue === null || queue.settings.paused) return { now, lease, ...NOTHING, retryAfter: null }
  const parameters = { queue: name, worker, limit, now, lease_until: now + lease, floor: fenceFloor }
  const jobs = text(statements.get('claim/look').get(parameters)?.jobs)
  const data = statements
    .get('claim/data')
    .all(parameters)
    .map((row) => row.data)
  const count = statements.get('claim/claim').run(parameters)
  queue.move('waiting', 'running', count)
  return { now, lease, jobs, data, retryAfter: count < limit ? nextDue(context, name) : null }
}

/** The answer to a claim that finds nothing; undefined: it might find something. Only reads. */
export function claimNothing(context: Context, { queue, lease }: ClaimRequest): PackedClaim | undefined {
  const { statements, now } = context
  if (statements.get('claim/probe').get({ queue }) !== undefined) return undefined
  const row = statements.get('counts/queue').get({ queue })
  const isClaimable = row !== undefined && integer(row.paused) === 0
  return {
    now,
    lease: lease ?? integerOrNull(row?.lease) ?? DEFAULT_LEASE,
    ...NOTHING,
    retryAfter: isClaimable ? nextDue(context, queue) : null,
  }
}

function nextDue({ statements, now }: Context, queue: string): number | null {
  const due = integerOrNull(statements.get('claim/next_due').get({ queue })?.due_at)
  return due === null ? null : Math.max(0, due - now)
}
