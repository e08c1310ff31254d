/** `millpond plan` */
import { type Plan, plan, type QueuePlan } from '../../pond/plan.ts'
import { defined } from '../../values/options/options.ts'
import type { RateOption } from '../../values/settings/rate.ts'
import { type Arguments, JSON_LINES, STORE } from '../arguments.ts'
import { grouped, time } from '../figures.ts'
import { knownQueue, withStore } from '../open.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT } from '../verb.ts'

const OPTIONS = {
  rate: { value: 'RATE', help: 'jobs that come, such as 100/s or 2000/h' },
  work: { value: 'TIME', help: 'how long a job runs, on average' },
  variation: { value: 'NUMBER', help: 'standard deviation of run times ÷ their mean; 1 unless given or measured' },
  surge: { value: 'TIME', help: 'the rate lasts so long, and no job comes after it' },
  'drain-within': {
    value: 'TIME',
    help: 'until no job waits: after the surge, or from now; as --surge unless given, without it 1m',
  },
  wait: { value: 'TIME', help: 'how long a job may wait on average; as long as it runs unless given' },
  backlog: { value: 'COUNT', help: 'jobs that wait already; 0 unless given' },
  concurrency: { value: 'COUNT', help: 'jobs that a process runs at once; 1 unless given' },
  queue: { value: 'NAME', help: 'takes what this queue of --store has measured' },
  minutes: { value: 'COUNT', help: 'how far back the measurements go, 1 to 60; 5 unless given' },
  ...STORE,
  ...JSON_LINES,
} as const
type Name = keyof typeof OPTIONS

export const verb = defineVerb<Name>({
  name: 'plan',
  summary: 'how many workers, and which queue size',
  options: OPTIONS,
  notes:
    'With --rate and --work, or with --queue and --store. TIME is 250ms, 5s, 1m and so on.\n' +
    'docs/sizing.md has the formulas, and how an autoscaler asks millpond serve for the same.',
  async run({ args, terminal }) {
    const result = await (args.text('queue') === undefined ? given(args) : measured(args))
    if (args.flag('json')) terminal.out(`${JSON.stringify(result)}\n`)
    else show(terminal, result)
    return EXIT.done
  },
})

const targets = (args: Arguments<Name>) => ({
  ...defined({
    surge: args.time('surge', 1),
    drainWithin: args.time('drain-within', 0),
    wait: args.time('wait', 1),
    variation: number(args.text('variation')),
    concurrency: args.whole('concurrency', 1, 1_000_000),
  }),
})

function number(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  throw new UsageError('--variation is a number such as 0.5')
}

function given(args: Arguments<Name>): Plan {
  for (const name of ['store', 'minutes'] as const) {
    if (args.text(name) !== undefined) throw new UsageError(`--${name} goes with --queue`)
  }
  const rate = args.text('rate')
  const work = args.time('work', 1)
  if (rate === undefined || work === undefined) {
    throw new UsageError('--rate and --work are needed, or --queue with --store')
  }
  const backlog = args.whole('backlog', 0, Number.MAX_SAFE_INTEGER)
  // The library checks its form.
  return plan({ rate: rate as RateOption, work, ...defined({ backlog }), ...targets(args) })
}

async function measured(args: Arguments<Name>): Promise<QueuePlan> {
  if (args.text('backlog') !== undefined) throw new UsageError('--backlog is measured with --queue')
  const options = {
    ...targets(args),
    ...defined({
      rate: args.text('rate') as RateOption | undefined,
      work: args.time('work', 1),
      minutes: args.whole('minutes', 1, 60),
    }),
  }
  return withStore(args, async (opened) => (await knownQueue(opened, args.text('queue'))).plan(options))
}

function show(terminal: Terminal, result: Plan | QueuePlan): void {
  const isUnknown = 'measured' in result && result.formulas.length === 0 && result.measured.work === null
  const rows = [
    ...('measured' in result ? measuredRows(result) : []),
    ...(isUnknown ? [['workers', grouped(result.workers)]] : plannedRows(result)),
  ]
  terminal.out(table(terminal, null, rows))
  if (isUnknown) {
    terminal.out(
      '\nNo job has ended in this time, so the run time is not known: one worker finds it out. Or give --work.\n',
    )
  }
  for (const { figure, formula, source } of result.formulas) terminal.out(`\n${figure}: ${formula}\n  ${source}\n`)
}

function measuredRows({ measured: { rate, work, variation, backlog, minutes } }: QueuePlan): string[][] {
  return [
    [`rate, last ${minutes} min`, `${rate.toFixed(2)}/s`],
    ['run time', work === null ? 'unknown' : `${time(work)} ± ${(variation * 100).toFixed(0)} %`],
    ['jobs that wait now', grouped(backlog)],
  ]
}

function plannedRows({ workers, processes, load, utilization, queue, drain, wait, formulas }: Plan): string[][] {
  // A plan without a surge looks at the time after the backlog.
  const later = drain > 0 && formulas.some(({ figure }) => figure === 'wait') ? ' after that' : ''
  return [
    ['workers', grouped(workers)],
    ...(processes === workers ? [] : [['processes', grouped(processes)]]),
    ['jobs at once on average', load.toFixed(1)],
    ['utilization', `${(utilization * 100).toFixed(0)} %`],
    ['queue size', grouped(queue)],
    ['time to drain', time(drain)],
    [`mean wait${later}`, time(wait.mean)],
    [`longest wait${later}`, time(wait.longest)],
  ]
}
