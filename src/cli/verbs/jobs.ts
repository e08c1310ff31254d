/** `millpond jobs` */
import type { Queue } from '../../pond/queue.ts'
import type { ListedJob } from '../../values/jobs/job.ts'
import { JOB_STATES, type JobState } from '../../values/jobs/records.ts'
import { defined } from '../../values/options/options.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { FILTERS, type Filter, filterOf, noneText } from '../filters.ts'
import { jobObject, jobsTable, PAYLOADS } from '../job-text.ts'
import { knownQueue, withStore } from '../open.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT } from '../verb.ts'

/** Most jobs of a call of the library. */
const PAGE = 1000

export const verb = defineVerb({
  name: 'jobs',
  summary: 'jobs of a queue: by state, group, key, error, text, time',
  operands: ['QUEUE'],
  options: {
    state: { value: 'STATE', help: `${JOB_STATES.join(', ')}; all unless given` },
    ...FILTERS,
    limit: { value: 'COUNT', help: 'most jobs, 1 to 1000000; 20 unless given' },
    after: { value: 'CURSOR', help: 'goes on behind this job, of a page before; needs --state' },
    ...PAYLOADS,
    ...STORE,
    ...JSON_LINES,
  },
  notes: 'Each line of --json has its cursor. Filters have no index: a rare one looks at every job of the state.',
  async run({ args, terminal, stop }) {
    const state = args.choice('state', JOB_STATES)
    const after = args.text('after')
    if (after !== undefined && state === undefined) throw new UsageError('--after needs --state')
    const filter = filterOf(args)
    const limit = args.whole('limit', 1, 1_000_000) ?? 20
    const payloads = args.flag('payloads')
    return withStore(args, async (opened) => {
      const queue = await knownQueue(opened, args.operand(0))
      const jobs: ListedJob[] = []
      let count = 0
      for await (const job of listed(queue, state === undefined ? JOB_STATES : [state], {
        filter,
        after,
        limit,
        stop,
      })) {
        count++
        const { cursor, ...info } = job
        if (args.flag('json')) terminal.out(`${jsonText({ ...jobObject(info, payloads), cursor })}\n`)
        else jobs.push(job)
      }
      if (count === 0 && !stop.aborted) terminal.err(await noneText(opened.store, queue, filter))
      if (args.flag('json')) return EXIT.done
      terminal.out(count === 0 ? 'No jobs.\n' : jobsTable(terminal, jobs, payloads))
      if (count === limit) terminal.err(more(jobs.at(-1), state))
      return EXIT.done
    })
  },
})

const more = (last: ListedJob | undefined, state: JobState | undefined): string =>
  state === undefined || last === undefined
    ? 'There may be more: give --limit, or --state.\n'
    : `There may be more: give --limit, or --after ${last.cursor}\n`

interface Wanted {
  filter: Filter
  after: string | undefined
  limit: number
  stop: AbortSignal
}

/** Page by page, since there may be any number. */
async function* listed(
  queue: Queue,
  states: readonly JobState[],
  { filter, after: from, limit, stop }: Wanted,
): AsyncGenerator<ListedJob> {
  let left = limit
  for (const state of states) {
    let after = from
    for (;;) {
      if (left <= 0 || stop.aborted) return
      const asked = Math.min(left, PAGE)
      const page = await queue.jobs(state, { ...filter, limit: asked, ...defined({ after }) })
      yield* page
      left -= page.length
      after = page.at(-1)?.cursor
      if (page.length < asked) break
    }
  }
}
