/** `millpond demo` */
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES } from '../arguments.ts'
import { type DemoReport, demo } from '../demo.ts'
import { grouped, time } from '../figures.ts'
import { table } from '../table.ts'
import { defineVerb, EXIT, stoppedCode } from '../verb.ts'

export const verb = defineVerb({
  name: 'demo',
  summary: 'a surge of mails through a queue in a new SQLite file, live, in half a minute',
  options: {
    jobs: { value: 'COUNT', help: 'mails that come, 100 a second; 1000 unless given' },
    work: { value: 'TIME', help: 'how long a mail takes; 500ms unless given' },
    workers: { value: 'COUNT', help: 'mails that are sent at once; 25 unless given' },
    ...JSON_LINES,
  },
  notes:
    'The file is removed at the end. In the repository, npm start compares this with two ways to do without a queue.',
  async run({ args, terminal, stop }) {
    const options = {
      jobs: args.whole('jobs', 1, 100_000) ?? 1000,
      work: args.time('work', 0) ?? 500,
      workers: args.whole('workers', 1, 1000) ?? 25,
    }
    const report = await demo(options, terminal, stop)
    if (report === undefined) return stoppedCode(stop)
    terminal.out(
      args.flag('json')
        ? `${jsonText(report)}\n`
        : told(report)
            .map((rows) => table(terminal, null, rows))
            .join(''),
    )
    return report.lost === 0 ? EXIT.done : EXIT.failed
  },
})

const told = ({
  accepted,
  answerP50,
  answerP95,
  sent,
  twice,
  lost,
  waitP50,
  waitP95,
  ms,
}: DemoReport): string[][][] => [
  [
    ['accepted', grouped(accepted)],
    ['answer p50, p95', `${time(answerP50)}, ${time(answerP95)}`],
    ['mails sent', grouped(sent)],
    ['sent twice', grouped(twice)],
    ['lost', grouped(lost)],
    ['wait p50, p95', `${time(waitP50 ?? 0)}, ${time(waitP95 ?? 0)}`],
    ['all was sent after', time(ms)],
  ],
]
