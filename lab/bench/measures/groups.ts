/**
 * How fast two worker processes get through jobs of very many groups with a limit on running jobs. The handlers record when they began and
 * ended; from that follows how many jobs of a group ran at once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Child, holds } from '../../child.ts'
import { machineTime } from '../../clock.ts'
import { openContender } from '../contender.ts'
import type { GroupsTask, Measure } from '../task.ts'
import { SLOTS } from './drain.ts'
import { BULK, loops } from './push.ts'

export const LINE = 'grouped'
const PROCESSES = 2
const POLL = 100
/** Pushes under way, where a library has no call for many jobs. */
const IN_FLIGHT = 100

/** A job that was handled. Times are those of the machine's clock, in ms. */
export interface Handled {
  group: string
  began: number
  ended: number
}

export const groups: Measure<'groups'> = async ({ contender: name, url, limit, order, seconds, ...sizes }) => {
  const setting = { url, concurrency: SLOTS / PROCESSES, forget: false, limit }
  const total = sizes.groups * sizes.each
  const contender = await openContender(name, setting)
  const line = contender.line(LINE, async () => {})
  const grouped = groupItem(order, sizes)
  if (line.pushMany === undefined) await loops(IN_FLIGHT, total, 1, ([item]) => item && line.push(grouped(item)))
  else await loops(1, total, BULK, (items) => line.pushMany?.(items.map(grouped)))
  const workers = await Promise.all(
    Array.from({ length: PROCESSES }, () =>
      Child.start(new URL('groups-worker.ts', import.meta.url), [name, JSON.stringify(setting)]),
    ),
  )
  const runs: Handled[] = []
  const hear = async () => {
    const told = await Promise.all(workers.map((worker) => worker.tell(holds<{ runs: Handled[] }>('runs'))))
    for (const each of told) for (const run of each.runs) runs.push(run)
  }
  const began = machineTime()
  await hear()
  while (runs.length < total && machineTime() < began + seconds * 1000) {
    await sleep(POLL)
    await hear()
  }
  await Promise.all(workers.map((worker) => worker.kill()))
  const last = runs.reduce((latest, { ended }) => Math.max(latest, ended), began)
  return { rate: (runs.length / (last - began)) * 1000, handled: runs.length, ...overlaps(runs, limit) }
}

/** Gives each job its group. */
function groupItem(order: GroupsTask['order'], { groups, each }: Pick<GroupsTask, 'groups' | 'each'>) {
  return ({ n }: { n: number }) => ({ n, group: `group-${order === 'blocks' ? Math.floor(n / each) : n % groups}` })
}

/** @returns `most`: how many of one group ever ran at once; `over`: jobs that began while as many of their group ran as the limit allows */
function overlaps(runs: readonly Handled[], limit: number): { most: number; over: number } {
  const byGroup = Map.groupBy(runs, ({ group }) => group)
  let most = 0
  let over = 0
  for (const group of byGroup.values()) {
    const sorted = group.toSorted((a, b) => a.began - b.began)
    let running: Handled[] = []
    for (const run of sorted) {
      running = running.filter(({ ended }) => ended > run.began)
      if (running.length >= limit) over++
      running.push(run)
      most = Math.max(most, running.length)
    }
  }
  return { most, over }
}
