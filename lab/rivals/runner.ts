/** Performs tasks in processes of their own, contenders in turn, each on a place with nothing in it. */
import { fileURLToPath } from 'node:url'
import { inFreshProcess, summarise } from '../bench/runner.ts'
import { MISSING, type Summary } from '../bench/statistics.ts'
import type { Place } from './place.ts'
import type { Outcome, Task } from './task.ts'

// That Redis keeps nothing on the disk is said in the head of the report, and need not be said by every process.
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --disable-warning=MillpondWarning`

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))

/** What each figure of a task came to over the runs; of one that failed, nothing. */
export type Figures = (figure: string) => Summary

/**
 * Each task `runs` times, A B C, C B A, A B C … The others are still worth having when one fails.
 * @param tell gets what goes on, and `fail` what failed
 */
export async function inTurn(
  tasks: readonly Task[],
  runs: number,
  place: Place,
  tell: (what: string) => void,
  fail: (what: string) => void,
): Promise<Figures[]> {
  const outcomes: Outcome[][] = tasks.map(() => [])
  for (let run = 0; run < runs; run++) {
    const order = [...tasks.entries()]
    if (run % 2 === 1) order.reverse()
    for (const [index, task] of order) {
      tell(`run ${run + 1} of ${runs}: ${task.measure}, ${task.contender}`)
      try {
        outcomes[index]?.push(await inFreshProcess({ ...task, url: await place.fresh() }, undefined, CHILD))
      } catch (error) {
        fail(`${task.contender}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  return outcomes.map((found) => {
    const figures = summarise(found)
    return (figure) => figures[figure] ?? MISSING
  })
}
