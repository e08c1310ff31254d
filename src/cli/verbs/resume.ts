/** `millpond resume` */
import { JSON_LINES, STORE } from '../arguments.ts'
import { setPaused } from '../pausing.ts'
import { defineVerb } from '../verb.ts'

export const verb = defineVerb({
  name: 'resume',
  summary: 'allows claims of queues again',
  operands: ['QUEUE…'],
  options: { ...STORE, ...JSON_LINES },
  run: (call) => setPaused(call, false),
})
