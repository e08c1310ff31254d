import type { Claimed, ClaimRequest } from '../../../values/jobs/records.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { Parameters, Statements } from '../connection/statements.ts'
import { integerOrNull, type Row, text, type Value } from '../connection/values.ts'
import { DEFAULT_LEASE, type Queue, type StoreContext } from '../queues.ts'
import type { PackedClaims } from '../wire.ts'

/** A claim that is this much before the last one, in milliseconds, shows that the clock was set back. */
const SET_BACK = DEFAULTS.store.setBack
/** Data after which a claim ends; and how many jobs it looks at before it knows how large they are, and then at a time. */
const MOST_BYTES = DEFAULTS.claim.bytes
const FIRST_LOOK = 16
const NEXT_LOOKS = 100

type PackedClaim = Omit<Claimed, 'jobs'> & PackedClaims

export function claim(context: StoreContext, request: ClaimRequest): PackedClaim {
  const { queues, now } = context
  // Limits are compared with the counts in its row.
  if (queues.find(request.queue)?.settings.isBounded) queues.write()
  bound(context, request.queue)
  const queue = queues.find(request.queue)
  const lease = request.lease ?? queue?.settings.lease ?? DEFAULT_LEASE
  const answer: PackedClaim = { now, lease, jobs: '[]', data: [], retryAfter: null, limited: false }
  if (queue === undefined || queue.settings.isPaused) return answer
  answer.limited = queue.settings.isLimited
  const startAt = take(context, request, queue, answer)
  if (answer.data.length < request.limit) answer.retryAfter ??= retryIn(context, queue, startAt)
  return answer
}

/** Lowers the queue's rate and pause to the furthest that they may lie ahead of now, and stores that. */
function bound({ statements, queues, now }: StoreContext, name: string): void {
  const settings = queues.find(name)?.settings
  if (settings === undefined || settings.isPaused || settings.heldUntil <= now) return
  const parameters = { queue: name, now }
  if (statements.get('claim/beyond', parameters) === undefined) return
  queues.write()
  statements.run('claim/bound', parameters)
}

/**
 * @returns from when the queue as a whole allows the first start that it refused, null: when a job has ended; a time
 *   that is past: it refused none
 */
function take(context: StoreContext, request: ClaimRequest, queue: Queue, answer: PackedClaim): number | null {
  const { statements, fences, now } = context
  const { worker, limit: asked, minPriority: min_priority = 0, perGroup: per_group = 1 } = request
  const { isGrouped, isBounded, slots, heldUntil } = queue.settings
  const startAt = slots === 0 ? null : heldUntil
  // One more than may run: only if it is there, it is a limit that makes the claim short.
  const limit = slots === null ? asked : Math.min(asked, slots + 1)
  const parameters = {
    queue: queue.name,
    worker,
    limit,
    min_priority,
    per_group,
    now,
    lease_until: now + answer.lease,
  }
  if (startAt === null || startAt > now || !pick(context, queue, parameters)) return startAt
  const { start = null, start_at = null } = (isBounded && statements.get('claim/refused', parameters)) || {}
  if (start !== null) statements.run('claim/drop', { start })
  const floor = fences.floor()
  const { looked, isCut } = look(statements, { ...parameters, floor })
  if (isCut) {
    statements.run('claim/drop', { start: looked.length + 1 })
    answer.retryAfter = 0
  }
  answer.jobs = `[${looked.map(({ job }) => text(job)).join(',')}]`
  answer.data = looked.map(({ data }) => data)
  // A claim that takes nothing needs no lock.
  if (answer.data.length > 0) {
    if (isBounded) statements.run('claim/spend', parameters)
    queue.move('waiting', 'running', statements.run('claim/claim', { ...parameters, floor }))
    if (isGrouped)
      for (const name of ['turns', 'virtual', 'start', 'place']) statements.run(`limits/${name}`, parameters)
  }
  statements.run('claim/clear')
  return start === null ? startAt : integerOrNull(start_at)
}

/** The rows of the picks, up to the one that makes their data 16 MiB. `isCut`: there are more. */
function look(statements: Statements, parameters: Parameters): { looked: Row[]; isCut: boolean } {
  const looked: Row[] = []
  let bytes = 0
  for (let count = FIRST_LOOK; ; count = NEXT_LOOKS) {
    const some = statements.all('claim/look', { ...parameters, from: looked.length, count })
    for (const row of some) {
      if (bytes >= MOST_BYTES) return { looked, isCut: true }
      looked.push(row)
      bytes += sizeOf(row.data)
    }
    if (some.length < count) return { looked, isCut: false }
  }
}

function sizeOf(data: Value | undefined): number {
  return typeof data === 'string' || data instanceof Uint8Array ? data.length : 0
}

/** False if there is surely nothing to pick. */
function pick({ statements, queues }: StoreContext, queue: Queue, parameters: { queue: string; now: number }): boolean {
  if (!queue.settings.isGrouped) return statements.run('claim/pick', parameters) > 0
  const { claimedAt } = queue.settings
  if (parameters.now < claimedAt - SET_BACK) statements.run('limits/touch', parameters)
  if (statements.get('limits/probe', parameters) === undefined) return false
  if (parameters.now !== claimedAt) statements.run('limits/claimed', parameters)
  queues.lineUp(queue.name)
  statements.run('limits/place', parameters)
  return statements.run('limits/pick', parameters) > 0
}

function retryIn({ statements, now }: StoreContext, queue: Queue, startAt: number | null): number | null {
  const isRefused = startAt === null || startAt > now
  const grouped = Number(queue.settings.isGrouped && !isRefused)
  const at = integerOrNull(statements.get('claim/retry', { queue: queue.name, now, grouped })?.at)
  const times = [at, isRefused ? startAt : null].filter((time) => time !== null)
  return times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
}
