import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import type { Context } from '../queues.ts'

export function configure({ statements, queues, fences }: Context, settings: QueueSettings): void {
  if (setsNothing(settings)) return
  const { queue: name, ...given } = settings
  const before = queues.find(name)?.settings
  queues.configure(name, given)
  const queue = queues.findOrCreate(name)
  queue.isChanged = true
  const { isGrouped, limits } = queue.settings
  if (isGrouped && !before?.isGrouped) {
    for (const step of GROUPING) statements.run(`limits/${step}`, { queue: name })
    fences.accept()
    queues.lineUp(name)
  }
  if (isGrouped && limits !== before?.limits) statements.run('limits/touch', { queue: name })
}

const GROUPING = ['count', 'count_pushed', 'count_left', 'count_removed', 'adopt_groups', 'adopt']

export function limitGroup(
  context: Context,
  { queue, group, limits }: { queue: string; group: string; limits: GroupLimits | null },
): void {
  configure(context, { queue, grouped: true })
  context.statements.run('limit-group/limit', { queue, group, limits: limits && JSON.stringify(limits) })
}
