import type { Claimed, ClaimRequest } from '../../../store.ts'
import { integer, integerOrNull, text } from '../connection/values.ts'
import { type Context, DEFAULT_LEASE, QueueChanges } from '../queues.ts'
import type { PackedClaims } from '../wire.ts'

type PackedClaim = Omit<Claimed, 'jobs'> & PackedClaims

const NOTHING: PackedClaims = { jobs: '[]', data: [] }

export function claim(context: Context, request: ClaimRequest): PackedClaim {
  const { statements, fenceFloor: floor, now } = context
  const queue = context.queues.find(request.queue)
  const answer = claimed(request, now, queue)
  if (queue === null || queue.settings.paused) return answer
  const { running, rate, grouped } = queue.limits
  let wait = queue.startableIn(now, 1)
  let count = 0
  if (wait === 0) {
    const { worker, limit: asked, minPriority: min_priority = 0 } = request
    // One more than may run: only if it is there, it is a limit that makes the claim short.
    const limit = running === null ? asked : Math.min(asked, running - queue.running + 1)
    const parameters = { queue: queue.name, worker, limit, min_priority, now, lease_until: now + answer.lease, floor }
    const statement = (name: string) => statements.get(`${grouped ? 'limits' : 'claim'}/${name}`)
    if (grouped) {
      context.queues.lineUp(queue.name)
      for (const name of ['picks', 'place', 'pick']) statement(name).run(parameters)
    }
    if (running !== null || rate !== null) {
      const costs = statement('costs').all(parameters)
      for (const { cost } of costs) {
        wait = queue.startableIn(now, integer(cost))
        if (wait !== 0) break
        queue.start(now, integer(cost))
        count++
      }
      parameters.limit = count
      if (grouped) statement('drop').run(parameters)
      if (rate !== null) statements.get('claim/spend').run({ queue: queue.name, full: queue.full })
    }
    answer.jobs = text(statement('look').get(parameters)?.jobs)
    answer.data = statement('data')
      .all(parameters)
      .map((row) => row.data)
    const changes = statement('claim').run(parameters)
    queue.move('waiting', 'running', changes - count)
    count = changes
    if (grouped) for (const name of ['turns', 'virtual', 'start', 'clear']) statement(name).run(parameters)
  }
  if (count < request.limit) answer.retryAfter = retryAfter(context, queue, wait)
  return answer
}

/** The answer to a claim that finds nothing; undefined: it might find something. Only reads. */
export function claimNothing(context: Context, request: ClaimRequest): PackedClaim | undefined {
  const { statements, now } = context
  const parameters = { queue: request.queue, min_priority: request.minPriority ?? 0, now }
  if (statements.get('claim/probe').get(parameters) !== undefined) return undefined
  const row = statements.get('counts/queue').get(parameters)
  const queue = row === undefined ? null : new QueueChanges(request.queue, row)
  const answer = claimed(request, now, queue)
  if (queue === null || queue.settings.paused) return answer
  const wait = queue.startableIn(now, 1)
  if (wait === 0 && queue.limits.grouped && statements.get('limits/probe').get(parameters) !== undefined) {
    return undefined
  }
  return { ...answer, retryAfter: retryAfter(context, queue, wait) }
}

function claimed({ lease }: ClaimRequest, now: number, queue: QueueChanges | null): PackedClaim {
  const settings = queue?.settings
  const limits = settings?.paused ? undefined : queue?.limits
  const limited = limits !== undefined && (limits.running ?? limits.rate ?? limits.groupRate) !== null
  return { now, lease: lease ?? settings?.lease ?? DEFAULT_LEASE, ...NOTHING, retryAfter: null, limited }
}

/** @param wait until the queue allows the start that it refused; null: until a job ends; 0: it refused none */
function retryAfter({ statements, now }: Context, queue: QueueChanges, wait: number | null): number | null {
  const parameters = { queue: queue.name }
  const times = [statements.get('claim/next_due').get(parameters)?.due_at]
  if (wait !== 0) times.push(wait === null ? null : now + wait)
  else if (queue.limits.grouped) {
    times.push(statements.get('limits/held').get(parameters)?.held_until)
    if (statements.get('limits/behind').get(parameters) !== undefined) times.push(now)
  }
  const soonest = Math.min(...times.map((time) => integerOrNull(time) ?? Number.POSITIVE_INFINITY))
  return soonest === Number.POSITIVE_INFINITY ? null : Math.max(0, soonest - now)
}
