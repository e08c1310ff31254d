/**
 * A job that is pushed to a queue where nothing waits, right before a claim: it is stored as that claim leaves it. This is what an
 * idle worker meets, and it saves the row a second write and the index of waiting jobs two.
 */
import type { Engine } from './engine.ts'
import { JOB_FIELDS, type PackedClaim } from './flat.ts'
import type { RequestOf } from './protocol.ts'
import { bindable, integer, text } from './values.ts'

/** What the claim answers; null: nothing was done, and both have to go the usual way. */
export function pushClaimed(engine: Engine, push: RequestOf<'push'>, claim: RequestOf<'claim'>): PackedClaim | null {
  const flat = push.input
  const { queue, worker, limit, lease } = claim.input
  if (!Array.isArray(flat) || flat.length !== JOB_FIELDS || flat[1] !== queue || limit < 1) return null
  const now = push.now ?? Date.now()
  const runAt = flat[4]
  if ((typeof runAt === 'number' ? runAt : now + integer(flat[3])) > now) return null
  const account = engine.ledger.open(queue)
  if (account.paused || account.room <= 0 || account.waits) return null
  const id = text(flat[0])
  const [priority = null, attempts = null, timeout = null] = [flat[2], flat[5], flat[6]]
  const [key = null, group = null, trace = null, encoding = null, data = null] = flat.slice(7)
  const stored = engine.statements.get('push/insert_claimed').run({
    id,
    queue,
    worker,
    now,
    priority: bindable(priority),
    attempts: bindable(attempts),
    timeout: bindable(timeout),
    key: bindable(key),
    group: bindable(group),
    trace: bindable(trace),
    encoding: bindable(encoding),
    data: bindable(data),
    lease_until: now + lease,
    floor: engine.floor,
  })
  if (stored === 0) return null
  account.move(null, 'running')
  account.changes.pushed_total++
  // In the order of `claimedFrom`; the attempt is 1.
  return {
    now,
    jobs: [[priority, 0, id, engine.floor + 1, 1, attempts, group, key, timeout, trace, now, now, encoding, data]],
  }
}
