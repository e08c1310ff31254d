import { isDeepStrictEqual } from 'node:util'
import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import type { Context } from '../queues.ts'

/** Unset: it stays as it is. */
const json = (value: object | null | undefined): string | null => (value ? JSON.stringify(value) : null)

export function configure({ statements, queues }: Context, settings: QueueSettings): void {
  if (setsNothing(settings)) return
  const { queue, capacity, keepDone, keepDead, paused, attempts, timeout, lease, backoff } = settings
  const { running, rate, grouped = false, groupRunning, groupRate } = settings
  const isGrouping = grouped || (groupRunning ?? groupRate ?? null) !== null
  const flag = (value: unknown): number => Number(value !== undefined)
  const before = queues.find(queue)?.limits
  queues.write()
  statements.get('configure/configure').run({
    queue,
    set_capacity: flag(capacity),
    capacity: capacity ?? null,
    keep_done: keepDone ?? null,
    keep_dead: keepDead ?? null,
    paused: paused === undefined ? null : Number(paused),
    attempts: attempts ?? null,
    set_timeout: flag(timeout),
    timeout: timeout ?? null,
    lease: lease ?? null,
    backoff_base: backoff?.base ?? null,
    backoff_factor: backoff?.factor ?? null,
    backoff_max: backoff?.max ?? null,
    backoff_jitter: backoff?.jitter ?? null,
    set_most: flag(running),
    most: running ?? null,
    set_rate: flag(rate),
    rate: json(rate),
    grouped: Number(isGrouping),
    set_group_most: flag(groupRunning),
    group_most: groupRunning ?? null,
    set_group_rate: flag(groupRate),
    group_rate: json(groupRate),
  })
  const { bells, limits } = queues.findOrCreate(queue)
  if (limits.grouped) {
    if (!before?.grouped) {
      for (const name of GROUPING) statements.get(`limits/${name}`).run({ queue })
      queues.lineUp(queue)
    }
    if (!isDeepStrictEqual(before, limits)) statements.get('limits/touch').run({ queue })
  }
  if (capacity !== undefined) bells.add('room')
  if (paused === false || !isDeepStrictEqual(before, limits)) bells.add('work')
}

const GROUPING = ['count', 'count_pushed', 'count_left', 'count_removed', 'adopt_groups', 'adopt']

interface OwnLimits {
  queue: string
  group: string
  limits: GroupLimits | null
}

export function limitGroup(context: Context, { queue, group, limits }: OwnLimits): void {
  configure(context, { queue, grouped: true })
  context.statements.get('limit-group/limit').run({ queue, group, limits: json(limits), weight: limits?.weight ?? 1 })
  context.queues.find(queue)?.bells.add('work')
}
