/** `millpond move` */
import { type Counts, type MovedQueue, type MoveReport, move } from '../../move/index.ts'
import { isMillpondError } from '../../values/errors/errors.ts'
import { JOB_STATES } from '../../values/jobs/records.ts'
import { type Environment, JSON_LINES } from '../arguments.ts'
import { counted, grouped, lasting } from '../figures.ts'
import { ProgressLine } from '../progress.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT, stoppedCode } from '../verb.ts'

export const verb = defineVerb({
  name: 'move',
  summary: 'jobs and settings from one store to another, while both are in use',
  operands: ['SOURCE', 'TARGET'],
  options: {
    queue: { value: 'NAME', multiple: true, help: 'only this queue' },
    follow: { help: 'goes on with what still comes to the source, until SIGINT or SIGTERM' },
    'dry-run': { help: 'only counts; TARGET is not opened' },
    'no-settings': { help: 'leaves settings, pauses and limits of the queues, and schedules, behind' },
    'no-headers': { help: 'leaves headers of messages of other programs behind' },
    ...JSON_LINES,
  },
  notes:
    'SOURCE and TARGET are URLs of stores, or env:NAME for one in the environment, which other users cannot see.\n' +
    'TARGET is made if it is not there. A job is removed from SOURCE once TARGET has it; running ones stay until they come back.\n' +
    'Ended in the middle, even by a kill, it goes on when it is called again. docs/move.md has recipes.\n' +
    'Exit codes: 0 done; 1 failed, or some jobs stay at SOURCE: it says why; 3 no such queue, or TARGET cannot keep something.',
  async run({ args, terminal, stop }) {
    const source = urlOf(args.operand(0), terminal.env)
    const target = urlOf(args.operand(1), terminal.env)
    const queues = args.queues('queue')
    const line = new ProgressLine(terminal, 'jobs moved')
    let toldOf = ''
    try {
      const report = await move(source, target, {
        ...(queues.length > 0 && { queues }),
        ...{ follow: args.flag('follow'), dryRun: args.flag('dry-run'), settings: !args.flag('no-settings') },
        headers: !args.flag('no-headers'),
        signal: stop,
        onProgress: (progress) => line.update(progress),
        onTrouble({ code, message }) {
          if (toldOf === code) return
          toldOf = code
          line.clear()
          terminal.err(`${code}: ${message}; trying again\n`)
        },
      })
      line.clear()
      if (args.flag('json')) showLines(terminal, report)
      else if (args.flag('dry-run')) showFound(terminal, report)
      else showMoved(terminal, report, stop)
      // A move that follows is a service: a signal is its ordinary end.
      if (report.stopped && !args.flag('follow')) return stoppedCode(stop)
      return report.left > 0 ? EXIT.failed : EXIT.done
    } catch (error) {
      line.clear()
      if (stop.aborted && error === stop.reason) return stoppedCode(stop)
      if (!isMillpondError(error, 'NotSupported')) throw error
      terminal.err(`millpond: ${error.code}: ${error.message}\n`)
      return EXIT.refused
    }
  },
})

function urlOf(given: string | undefined, env: Environment): string {
  if (given === undefined) throw new UsageError('SOURCE and TARGET are missing')
  if (!given.startsWith('env:')) return given
  const name = given.slice('env:'.length)
  const url = env[name]
  if (url === undefined || url === '')
    throw new UsageError(`${shownVariable(name)} is not set in the environment, or empty`)
  return url
}

/** What is no name may be a URL that was mistyped. */
const shownVariable = (name: string): string => (/^[A-Za-z_]\w{0,60}$/.test(name) ? name : 'the variable of env:NAME')

function showLines(terminal: Terminal, { queues, ...report }: MoveReport): void {
  for (const queue of queues) terminal.out(`${JSON.stringify(queue)}\n`)
  terminal.out(`${JSON.stringify({ ...report, rate: rateOf(report) })}\n`)
}

function showFound(terminal: Terminal, { queues, remaining, schedules }: MoveReport): void {
  if (queues.length > 0) terminal.out(countsTable(terminal, queues, ({ found }) => found))
  else terminal.out('The source has no queues.\n')
  const and = schedules > 0 ? ` and ${counted(schedules, 'schedule')}` : ''
  terminal.out(`${counted(remaining, 'job')}${and}. Nothing was moved.\n`)
}

/** Jobs of a queue that stay at the source, for people. */
const MOST_LISTED = 10

function showMoved(terminal: Terminal, report: MoveReport, stop: AbortSignal): void {
  const { queues, moved, repeated, remaining, schedules, ms } = report
  if (queues.length > 0) terminal.out(countsTable(terminal, queues, (queue) => queue.moved))
  else terminal.out('The source has no queues.\n')
  terminal.out(`${counted(moved, 'job')} moved in ${lasting(ms)}, ${grouped(rateOf(report))}/s.\n`)
  if (schedules > 0) terminal.out(`${counted(schedules, 'schedule')} moved.\n`)
  if (repeated > 0) terminal.out(`${grouped(repeated)} were there already, of an earlier run.\n`)
  for (const { queue, left, leftJobs } of queues) {
    for (const [reason, count] of Object.entries(left)) {
      const why = reason === 'KeyTaken' ? 'another live job at the target has their key' : reason
      terminal.out(`${grouped(count)} of ${queue} stay at the source: ${why}.\n`)
    }
    for (const { id, reason, why } of leftJobs.slice(0, MOST_LISTED)) terminal.out(`  ${id} ${reason}: ${why}\n`)
    const others = leftJobs.length - MOST_LISTED
    if (others > 0) terminal.out('  and others: --json lists 100 of each queue\n')
  }
  const others = remaining - report.left
  if (others > 0)
    terminal.out(
      `${grouped(others)} ${stop.aborted ? 'are still at the source: the same call goes on' : 'came to the source meanwhile'}.\n`,
    )
}

function countsTable(terminal: Terminal, queues: readonly MovedQueue[], counts: (queue: MovedQueue) => Counts): string {
  const rows = queues.map((queue) => [queue.queue, ...JOB_STATES.map((state) => grouped(counts(queue)[state]))])
  return table(terminal, ['queue', ...JOB_STATES], rows)
}

const rateOf = ({ moved, ms }: Pick<MoveReport, 'moved' | 'ms'>): number =>
  ms === 0 ? 0 : Math.round((moved / ms) * 1000)
