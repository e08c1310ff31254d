/** `millpond signal` */
import { checkId } from '../../values/jobs/ids.ts'
import { checkStepName } from '../../values/jobs/step-names.ts'
import { jsonText } from '../../web/answer.ts'
import { acted } from '../acted.ts'
import { JSON_LINES, orUsageError, STORE } from '../arguments.ts'
import { jsonData } from '../json-data.ts'
import { withStore } from '../open.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'signal',
  summary: 'sends a signal to a live job; one that is parked goes on',
  operands: ['NAME', '[DATA]'],
  options: {
    id: { value: 'ID', help: 'the job' },
    queue: { value: 'QUEUE', help: 'with --key: the queue of the job' },
    key: { value: 'KEY', help: 'with --queue: the key of the job' },
    ...STORE,
    ...JSON_LINES,
  },
  notes:
    'Give --id, or --queue and --key. DATA is JSON, or - for the standard input. The signal is kept until a wait of the ' +
    'handler takes it; each wait takes one.',
  async run({ args, terminal }) {
    const [id, queue, key] = [args.text('id'), args.text('queue'), args.text('key')]
    const hasKey = queue !== undefined && key !== undefined
    if ((id === undefined) !== hasKey) throw new UsageError('give --id, or --queue and --key')
    const name = orUsageError('', () => checkStepName(args.operand(0)))
    const target = hasKey ? { queue, key } : orUsageError('--id: ', () => checkId(id ?? ''))
    const data = await jsonData(terminal, args.operand(1))
    const signalled = await withStore(args, async (opened) => {
      const { id } = await opened.pond.signal(target, name, data)
      const of = queue ?? (await opened.pond.job(id))?.queue
      if (of !== undefined) await acted(opened, terminal, { action: 'signal', queue: of, id })
      return { id }
    })
    terminal.out(args.flag('json') ? `${jsonText(signalled)}\n` : `${signalled.id} has the signal ${name}.\n`)
    return EXIT.done
  },
})
