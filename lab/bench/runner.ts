/** Performs tasks in processes of their own, contenders in turn, each on a store with nothing in it. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Place } from '../places.ts'
import { fail } from '../progress.ts'
import { MISSING, type Summary, summary } from '../statistics.ts'
import { inTurn } from '../turns.ts'
import type { Outcome, Placed, Task } from './task.ts'

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))
// That Redis keeps nothing on the disk is said in the head of the report, and need not be said by every process.
const FLAGS = ['--expose-gc', '--disable-warning=ExperimentalWarning', '--disable-warning=MillpondWarning']

/** The summary of a figure over the runs of a task; `MISSING` if the task failed. */
export type Figures = (figure: string) => Summary

function isOutcome(message: unknown): message is { outcome: Outcome } {
  return typeof message === 'object' && message !== null && 'outcome' in message
}

/** @param heap in MiB, where the default would not do */
function inFreshProcess(task: Placed, heap?: number): Promise<Outcome> {
  const execArgv = [...FLAGS]
  if (heap !== undefined) execArgv.push(`--max-old-space-size=${heap}`)
  if (process.env.BENCH_PROF !== undefined) execArgv.push('--cpu-prof', `--cpu-prof-dir=${process.env.BENCH_PROF}`)
  const child = fork(CHILD, { execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  child.send({ task })
  return new Promise((resolve, reject) => {
    let outcome: Outcome | undefined
    child.on('message', (message) => {
      if (isOutcome(message)) outcome = message.outcome
    })
    child.on('exit', (code, signal) => {
      if (outcome !== undefined) resolve(outcome)
      else reject(new Error(`${JSON.stringify(task)} ended with ${signal ?? code}`))
    })
  })
}

/** Each task `runs` times, in turn. The others are still worth having when one fails. */
export async function measured(tasks: readonly Task[], runs: number, place: Place, heap?: number): Promise<Figures[]> {
  const about = ({ measure, contender }: Task) => `${measure}, ${contender}`
  const perform = async (task: Task): Promise<Outcome | undefined> => {
    try {
      return await inFreshProcess({ ...task, url: await place.fresh() }, heap)
    } catch (error) {
      fail(about(task), error)
      return undefined
    }
  }
  const outcomes = await inTurn(tasks, runs, perform, about)
  return tasks.map((task) => {
    const found = (outcomes.get(task) ?? []).filter((outcome) => outcome !== undefined)
    return (figure) => {
      const values = found.flatMap((outcome) => outcome[figure] ?? [])
      return values.length === 0 ? MISSING : summary(values)
    }
  })
}
