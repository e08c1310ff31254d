/** Performs tasks in processes of their own, contenders in turn, so that a slow spell of the machine falls on all of them. */
import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Outcome, Task } from './measure.ts'
import { type Summary, summary } from './statistics.ts'

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))
export const DATA = fileURLToPath(new URL('../.data', import.meta.url))

const running = new Set<ChildProcess>()
let started = 0

export function clean(): void {
  for (const child of running) child.kill('SIGKILL')
  rmSync(DATA, { recursive: true, force: true })
}

function isOutcome(message: unknown): message is { outcome: Outcome } {
  return typeof message === 'object' && message !== null && 'outcome' in message
}

/**
 * @param heap in MiB, where the default would not do
 * @param program what performs the task
 */
export function inFreshProcess(task: object, heap?: number, program = CHILD): Promise<Outcome> {
  const flags = ['--expose-gc', '--disable-warning=ExperimentalWarning']
  if (heap !== undefined) flags.push(`--max-old-space-size=${heap}`)
  if (process.env.BENCH_PROF !== undefined) flags.push('--cpu-prof', `--cpu-prof-dir=${process.env.BENCH_PROF}`)
  const child = fork(program, { execArgv: flags, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  running.add(child)
  child.send({ task, dir: `${DATA}/${process.pid}-${started++}` })
  return new Promise((resolve, reject) => {
    let outcome: Outcome | undefined
    child.on('message', (message) => {
      if (isOutcome(message)) outcome = message.outcome
    })
    child.on('exit', (code, signal) => {
      running.delete(child)
      if (outcome !== undefined) resolve(outcome)
      else reject(new Error(`${JSON.stringify(task)} ended with ${signal ?? code}`))
    })
  })
}

/** Each task `runs` times, A B C, C B A, A B C … @returns per task, what each of its figures came to over the runs */
export async function inTurn(tasks: readonly Task[], runs: number, heap?: number): Promise<Record<string, Summary>[]> {
  const outcomes: Outcome[][] = tasks.map(() => [])
  for (let run = 0; run < runs; run++) {
    const order = [...tasks.entries()]
    if (run % 2 === 1) order.reverse()
    for (const [index, task] of order) outcomes[index]?.push(await inFreshProcess(task, heap))
  }
  return outcomes.map(summarise)
}

export function summarise(outcomes: readonly Outcome[]): Record<string, Summary> {
  const names = Object.keys(outcomes[0] ?? {})
  return Object.fromEntries(
    names.map((name) => [name, summary(outcomes.map((outcome) => outcome[name] ?? Number.NaN))]),
  )
}
