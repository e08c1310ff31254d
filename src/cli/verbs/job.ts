/** `millpond job` */
import { checkId } from '../../values/jobs/ids.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, orUsageError, STORE } from '../arguments.ts'
import { jobObject, jobText, PAYLOADS } from '../job-text.ts'
import { unknownJob, withStore } from '../open.ts'
import { relativesOf } from '../relatives.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'job',
  summary: 'one job: its state, times, error, log, and the jobs that it waits for',
  operands: ['ID'],
  options: { ...PAYLOADS, ...STORE, ...JSON_LINES },
  async run({ args, terminal }) {
    const id = orUsageError('', () => checkId(args.operand(0)))
    const { job, relatives } = await withStore(args, async ({ pond }) => {
      return { job: await pond.job(id), relatives: await relativesOf(pond, id) }
    })
    if (job === undefined) throw unknownJob(id)
    const payloads = args.flag('payloads')
    if (args.flag('json')) terminal.out(`${jsonText({ ...jobObject(job, payloads), ...relatives?.ids })}\n`)
    else terminal.out(jobText(terminal, job, payloads, relatives?.rows))
    return EXIT.done
  },
})
