/**
 * How fast two worker processes get through jobs of very many groups, of which only so many may run at once; and how many did, by the handlers' own record of
 * when they began and ended.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { machineTime } from '../../clock.ts'
import { SLOTS } from '../measures/drain.ts'
import type { GroupsTask, Measure } from '../task.ts'
import { openGrouped } from './contender.ts'
import type { Handled, Setup } from './worker.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const PROCESSES = 2
const POLL = 100

export const groups: Measure<'groups'> = async ({ contender: name, url, limit, order, seconds, ...sizes }) => {
  const setting = { url, concurrency: SLOTS / PROCESSES, limit }
  const total = sizes.groups * sizes.each
  const contender = await openGrouped(name, setting)
  await contender.fill(groupsOf(order, sizes))
  const workers = Array.from({ length: PROCESSES }, () =>
    fork(WORKER, { serialization: 'advanced', execArgv: ['--disable-warning=ExperimentalWarning'] }),
  )
  const ask = (what: Setup | 'work' | 'count' | 'tell') =>
    Promise.all(
      workers.map(async (worker) => {
        const answer = once(worker, 'message')
        worker.send(what)
        const [told]: unknown[] = await answer
        return told
      }),
    )
  await ask({ name, setting })
  const began = machineTime()
  await ask('work')
  const handled = async () => ((await ask('count')) as number[]).reduce((sum, count) => sum + count, 0)
  let count = 0
  while (count < total && machineTime() < began + seconds * 1000) {
    await sleep(POLL)
    count = await handled()
  }
  const runs = ((await ask('tell')) as Handled[][]).flat()
  for (const worker of workers) worker.kill('SIGKILL')
  const last = runs.reduce((latest, { ended }) => Math.max(latest, ended), began)
  return { rate: (runs.length / (last - began)) * 1000, handled: runs.length, ...overlaps(runs, limit) }
}

/** The group of each job, in the order of pushing. */
function groupsOf(order: GroupsTask['order'], { groups, each }: Pick<GroupsTask, 'groups' | 'each'>): string[] {
  return Array.from({ length: groups * each }, (_, n) => {
    const group = order === 'blocks' ? Math.floor(n / each) : n % groups
    return `group-${group}`
  })
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
