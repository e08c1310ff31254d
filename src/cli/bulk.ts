/**
 * Changes of jobs: of those that are named, or of all of a queue that pass the filters. The latter can be looked at
 * first, and have a progress bar.
 */
import { searchText } from '../pond/action-detail.ts'
import { ACTIONS_QUEUE } from '../pond/actions.ts'
import type { BulkPreview, BulkReport } from '../pond/bulk.ts'
import type { BulkOptions, DryRunOptions } from '../pond/bulk-options.ts'
import type { Queue } from '../pond/queue.ts'
import { checkId } from '../values/jobs/ids.ts'
import type { JobState } from '../values/jobs/records.ts'
import { defined } from '../values/options/options.ts'
import { jsonText } from '../web/answer.ts'
import { acted, jobsActed, queuesOf } from './acted.ts'
import { JSON_LINES, orUsageError, STORE } from './arguments.ts'
import { counted, grouped } from './figures.ts'
import { FILTERS, type Filter, filterOf, noneText } from './filters.ts'
import { jobObject, jobsTable } from './job-text.ts'
import { knownQueue, type Opened, withStore } from './open.ts'
import { ProgressLine } from './progress.ts'
import { Speed } from './speed.ts'
import type { Terminal } from './terminal.ts'
import { UsageError } from './usage-error.ts'
import { type Call, EXIT, stoppedCode } from './verb.ts'

export const BULK = {
  queue: { value: 'NAME', help: 'instead of IDs: jobs of this queue that pass the filters' },
  ...FILTERS,
  limit: { value: 'COUNT', help: 'changes so many jobs at most; of finished ones the newest' },
  after: { value: 'PLACE', help: 'goes on where a run was stopped, which told this' },
  'dry-run': { help: 'only counts, and shows some of the jobs' },
  yes: { help: 'does it; without this, a change of many jobs is only shown' },
  ...STORE,
  ...JSON_LINES,
} as const
/** An agent cannot take away the trace of what it did. */
const OF_LOG = 'is an entry of the log of actions, which no tool changes'
/** What ends a call that only showed what it would do. */
export const NEEDS_YES = 'millpond: nothing was changed: give --yes to do it\n'

/**
 * For the help of a verb: what is changed without a filter, what is only shown, and exit codes.
 * @param all what `--queue` without filters takes
 */
export function notesOf({ all, more }: { all: string; more?: string }): string {
  const lines = [
    `--queue without filters takes ${all}. All filters that are given must hold.`,
    '--dry-run counts those jobs, shows the first ones with their errors, and changes nothing. Of IDs it tells how many',
    'are known.',
    'Without --yes, --queue does no more than --dry-run, and ends with 3. IDs need no --yes.',
    ...(more === undefined ? [] : [more]),
    'Exit codes: 0 done, also if no job passes the filters; 1 it failed, or not all IDs were changed; 2 a wrong call;',
    '3 no such queue, or --yes is missing. Stopped in the middle, it tells how to go on.',
  ]
  return lines.join('\n')
}

/** What a verb does to its jobs. */
interface Change {
  /** In the log of actions. */
  action: string
  /** As in `12 jobs requeued`. */
  past: string
  /** As `--state` gives it; and what holds without, where it is one. */
  state?: JobState | undefined
  stateUnlessGiven?: JobState
  /** @returns undefined: done; else why not */
  one(opened: Opened, id: string): Promise<string | undefined>
  all(queue: Queue, filter: Filter, options: BulkOptions): Promise<BulkReport>
  preview(queue: Queue, filter: Filter, options: DryRunOptions): Promise<BulkPreview>
  /** `--data` gives new data, and is no filter. */
  hasData?: boolean
}

interface Wanted {
  filter: Filter
  options: BulkOptions
  change: Change
}

type BulkCall = Call<keyof typeof BULK>

export function changeJobs(call: BulkCall, change: Change): Promise<number> {
  const { args } = call
  const ids = args.operandsFrom(0)
  const name = args.text('queue')
  if (ids.length > 0 && name !== undefined) throw new UsageError('give IDs, or --queue with filters, not both')
  if (ids.length === 0 && name === undefined) throw new UsageError('which jobs? Give IDs, or --queue with filters')
  const filter = filterOf(args, change.hasData)
  const limit = args.whole('limit', 1, Number.MAX_SAFE_INTEGER)
  if (ids.length > 0) {
    const isFiltered = Object.keys(filter).length > 0 || (change.state ?? limit ?? args.text('after')) !== undefined
    if (isFiltered) throw new UsageError('filters, --state, --limit and --after go with --queue, and not with IDs')
    return changeNamed(call, ids, change)
  }
  return withStore(args, async (opened) => {
    const queue = await knownQueue(opened, name)
    const options = { signal: call.stop, ...defined({ limit, after: args.text('after') }) }
    if (args.flag('dry-run') || !args.flag('yes')) return preview(call, opened, queue, { filter, options, change })
    return changeAll(call, opened, queue, { filter, options, change })
  })
}

async function changeNamed(
  { args, terminal, stop }: BulkCall,
  given: readonly string[],
  change: Change,
): Promise<number> {
  const ids = given.map((id) => orUsageError('', () => checkId(id)))
  return withStore(args, async (opened) => {
    const isDry = args.flag('dry-run')
    const queues = isDry ? new Map<string, string>() : await queuesOf(opened, ids)
    const isLog = (id: string) => terminal.through === 'mcp' && queues.get(id) === ACTIONS_QUEUE
    const done: string[] = []
    try {
      for (const id of ids) {
        if (stop.aborted) return stoppedCode(stop)
        const fault = isDry ? await unknown(opened, id) : isLog(id) ? OF_LOG : await change.one(opened, id)
        if (fault === undefined) done.push(id)
        else terminal.err(`millpond: job ${id} ${fault}\n`)
      }
    } finally {
      if (!isDry) await jobsActed(opened, terminal, change.action, done, queues)
    }
    const { length: count } = done
    if (args.flag('json')) terminal.out(`${jsonText({ [isDry ? 'count' : 'changed']: count })}\n`)
    else
      terminal.out(
        isDry ? `${counted(count, 'job')}. Nothing was changed.\n` : `${counted(count, 'job')} ${change.past}.\n`,
      )
    return count === ids.length ? EXIT.done : EXIT.failed
  })
}

const unknown = async ({ pond }: Opened, id: string): Promise<string | undefined> =>
  (await pond.job(id)) === undefined ? 'is not known' : undefined

async function preview(
  { args, terminal }: BulkCall,
  opened: Opened,
  queue: Queue,
  { filter, options, change }: Wanted,
): Promise<number> {
  const found = await change.preview(queue, filter, { ...options, dryRun: 'exact' })
  if (args.flag('json')) {
    const sample = found.sample.map((job) => jobObject(job, false))
    terminal.out(`${jsonText({ ...found, sample })}\n`)
  } else {
    if (found.sample.length > 0) terminal.out(jobsTable(terminal, found.sample, false))
    const more = found.count > found.sample.length && found.sample.length > 0 ? ' These are the first ones.' : ''
    terminal.out(`${counted(found.count, 'job')}.${more} Nothing was changed.\n`)
  }
  if (found.count === 0) terminal.err(await noneText(opened.store, queue, filter))
  if (args.flag('dry-run') || found.count === 0) return EXIT.done
  terminal.err(NEEDS_YES)
  return EXIT.refused
}

async function changeAll(
  { args, terminal, stop }: BulkCall,
  opened: Opened,
  queue: Queue,
  { filter, options, change }: Wanted,
): Promise<number> {
  const line = new ProgressLine(terminal, 'jobs looked at')
  const speed = new Speed()
  let next: string | undefined
  let count = 0
  try {
    const report = await change.all(queue, filter, {
      ...options,
      onProgress: (progress) => {
        ;({ next, changed: count } = progress)
        line.update(speed.of(progress.looked, Math.max(progress.looked, progress.total)))
      },
    })
    ;({ next, changed: count } = report)
    line.clear()
    show(terminal, report, args.flag('json'), change)
    if (report.matched === 0 && report.next === undefined) terminal.err(await noneText(opened.store, queue, filter))
    return stop.aborted && report.next !== undefined ? stoppedCode(stop) : EXIT.done
  } catch (error) {
    line.clear()
    if (stop.aborted && error === stop.reason) return stoppedCode(stop)
    if (next !== undefined) terminal.err(`What was done stays done. The rest: the same call with --after ${next}\n`)
    throw error
  } finally {
    const detail = defined({ detail: searchText({ state: change.state ?? change.stateUnlessGiven, ...filter }) })
    await acted(opened, terminal, { action: `${change.action}All`, queue: queue.name, count, ...detail })
  }
}

function show(terminal: Terminal, report: BulkReport, isJson: boolean, { past }: Change): void {
  if (isJson) {
    terminal.out(`${jsonText(report)}\n`)
    return
  }
  const { changed, matched, next } = report
  terminal.out(`${counted(changed, 'job')} ${past}.\n`)
  const others = matched - changed
  if (others > 0)
    terminal.out(
      `${grouped(others)} that pass the filter were not changed: they had moved on, or a live job has their key.\n`,
    )
  if (next !== undefined) terminal.out(`The rest: the same call with --after ${next}\n`)
}
