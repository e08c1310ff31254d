/** `millpond stats` */
import type { Percentiles, QueueReport } from '../../pond/stats.ts'
import { JOB_STATES } from '../../values/jobs/records.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { attentionText, attentionTo, heardIn } from '../attention.ts'
import { grouped, lasting, NONE, timeOrNone } from '../figures.ts'
import { knownQueue, withStore } from '../open.ts'
import { plain, table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'stats',
  summary: 'jobs per state, waits and run times, of all queues or of one',
  operands: ['[QUEUE]'],
  options: {
    minutes: { value: 'COUNT', help: 'how far back waits and run times go, 1 to 60; 5 unless given' },
    ...STORE,
    ...JSON_LINES,
  },
  async run({ args, terminal }) {
    const options = { minutes: args.whole('minutes', 1, 60) ?? 5 }
    const name = args.operand(0)
    return withStore(args, async (opened) => {
      const one = name === undefined ? undefined : await (await knownQueue(opened, name)).stats(options)
      const reports = one === undefined ? await opened.pond.stats(options) : [one]
      if (args.flag('json')) for (const report of reports) terminal.out(`${jsonText(report)}\n`)
      else {
        if (one === undefined) showAll(terminal, reports)
        else showOne(terminal, one, options.minutes)
        const workers = await heardIn(opened.pond)
        for (const attention of reports.flatMap((report) => attentionTo(report, workers))) {
          terminal.out(`${plain(attentionText(attention))}\n`)
        }
      }
      return EXIT.done
    })
  },
})

function showAll(terminal: Terminal, reports: readonly QueueReport[]): void {
  if (reports.length === 0) {
    terminal.out('The store has no queues.\n')
    return
  }
  const rows = reports.map((report) => {
    const { queue, counts, oldestWaiting, wait } = report
    const age = oldestWaiting === null ? NONE : lasting(oldestWaiting)
    return [queue, ...JOB_STATES.map((state) => grouped(counts[state])), age, timeOrNone(wait.p95)]
  })
  terminal.out(table(terminal, ['queue', ...JOB_STATES, 'oldest', 'wait p95'], rows))
}

function showOne(terminal: Terminal, report: QueueReport, minutes: number): void {
  const { counts, totals, oldestWaiting, wait, run, capacity, lastClaim } = report
  const ago = lastClaim === null ? 'never' : `${lasting(lastClaim)} ago`
  terminal.out(
    table(terminal, null, [
      ...JOB_STATES.map((state) => [state, grouped(counts[state])]),
      ['oldest waiting', oldestWaiting === null ? NONE : lasting(oldestWaiting)],
      ['capacity', capacity === null ? 'no limit' : grouped(capacity)],
      ['a worker was heard of', ago],
    ]),
  )
  const percentiles = (name: string, { count, p50, p95, p99 }: Percentiles) => [
    name,
    grouped(count),
    ...[p50, p95, p99].map(timeOrNone),
  ]
  const rows = [
    percentiles('wait', wait),
    percentiles('run', run),
    ...report.priorities.flatMap((own) => [
      percentiles(`wait, priority ${own.priority}`, own.wait),
      percentiles(`run, priority ${own.priority}`, own.run),
    ]),
  ]
  terminal.out(`\n${table(terminal, [`last ${minutes} min`, 'jobs', 'p50', 'p95', 'p99'], rows)}`)
  const all = Object.entries(totals).map(([name, count]) => [name, grouped(count)])
  terminal.out(`\n${table(terminal, ['in all', 'times'], all)}`)
}
