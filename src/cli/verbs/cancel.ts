/** `millpond cancel` */
import { BULK, changeJobs, notesOf } from '../bulk.ts'
import { defineVerb } from '../verb.ts'

const STATES = ['blocked', 'scheduled', 'waiting', 'running'] as const

export const verb = defineVerb({
  name: 'cancel',
  summary: 'cancels jobs that are not finished; the handlers of running ones are told',
  operands: ['[ID…]'],
  options: {
    state: { value: 'STATE', help: 'with --queue: blocked, scheduled, waiting or running; all of them unless given' },
    ...BULK,
  },
  notes: notesOf({
    all: 'every live job of the queue',
    more: 'A cancelled job can be requeued, until --keep-dead of its queue is over.',
  }),
  run(call) {
    const state = call.args.choice('state', STATES)
    return changeJobs(call, {
      action: 'cancel',
      past: 'cancelled',
      state,
      async one({ pond }, id) {
        const now = await pond.cancel(id)
        if (now === undefined) return 'is not known'
        return now === 'cancelled' ? undefined : `is ${now} already`
      },
      all: (queue, filter, options) => queue.cancelAll({ state, ...filter }, options),
      preview: (queue, filter, options) => queue.cancelAll({ state, ...filter }, options),
    })
  },
})
