/** `millpond pause` */
import { JSON_LINES, STORE } from '../arguments.ts'
import { setPaused } from '../pausing.ts'
import { defineVerb } from '../verb.ts'

export const verb = defineVerb({
  name: 'pause',
  summary: 'stops claims of queues in every process; pushes go on',
  operands: ['QUEUE…'],
  options: { ...STORE, ...JSON_LINES },
  notes:
    'Running jobs finish. It holds over restarts and deploys, until millpond resume. Of several, an unknown one changes none.',
  run: (call) => setPaused(call, true),
})
