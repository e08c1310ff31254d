/** `millpond job` */
import { checkId } from '../../values/ids.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, orUsageError, STORE } from '../arguments.ts'
import { jobObject, jobText, PAYLOADS } from '../job-text.ts'
import { unknownJob, withStore } from '../open.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'job',
  summary: 'one job: its state, times, error and log',
  operands: ['ID'],
  options: { ...PAYLOADS, ...STORE, ...JSON_LINES },
  async run({ args, terminal }) {
    const id = orUsageError('', () => checkId(args.operand(0)))
    const job = await withStore(args, ({ pond }) => pond.job(id))
    if (job === undefined) throw unknownJob(id)
    const payloads = args.flag('payloads')
    terminal.out(args.flag('json') ? `${jsonText(jobObject(job, payloads))}\n` : jobText(terminal, job, payloads))
    return EXIT.done
  },
})
