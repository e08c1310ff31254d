/** Steps of jobs and signals, in requests and answers. */

import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { anything, described, id, nullable, reply, request, text, time } from './api-schemas.ts'
import { array, integer, object, oneOf, string } from './json-schema.ts'

const error = object({ code: text, name: text, message: text })
const whole = integer(0, Number.MAX_SAFE_INTEGER)

const step = object(
  {
    name: described(text, 'With #2 and so on, where the handler uses a name again; of a signal: its name.'),
    kind: oneOf(['step', 'sleep', 'wait', 'run', 'signal', 'unknown']),
    state: oneOf(['done', 'failed', 'waiting']),
    error: nullable(error),
    at: nullable(time),
    took: nullable(described(whole, 'Milliseconds for which a step ran.')),
    attempt: nullable(whole),
    until: nullable(time),
    child: nullable(id),
  },
  { result: anything, ask: described(text, 'The question of a wait.') },
)

export const stepList = reply('Steps', { id, steps: array(step, { description: 'In the order in which they began.' }) })

export const signalName = string({
  minLength: 1,
  maxLength: DEFAULTS.steps.key,
  description: 'The name of the signal, as `ctx.waitFor` has it.',
})
export const newSignal = request('NewSignal', {}, { data: anything })
export const keySignal = request(
  'KeySignal',
  { key: string({ minLength: 1, maxLength: 255 }), name: signalName },
  { data: anything },
)
export const signalled = reply('Signalled', { id })
