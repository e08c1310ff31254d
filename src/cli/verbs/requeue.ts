/** `millpond requeue` */
import { BULK, changeJobs } from '../bulk.ts'
import { defineVerb } from '../verb.ts'

const STATES = ['dead', 'cancelled'] as const

export const verb = defineVerb({
  name: 'requeue',
  summary: 'sends dead or cancelled jobs back to waiting, with all their attempts',
  operands: ['[ID…]'],
  options: { state: { value: 'STATE', help: 'with --queue: dead or cancelled; dead' }, ...BULK },
  run(call) {
    const state = call.args.choice('state', STATES)
    return changeJobs(call, {
      action: 'requeue',
      past: 'requeued',
      isAllowed: true,
      async one({ store }, id) {
        const { requeued } = await store.operations.requeue({ ids: [id] })
        return requeued === 1 ? undefined : 'is not dead or cancelled, or a live job has its key'
      },
      all: (queue, filter, options) => queue.requeueAll({ state, ...filter }, options),
      preview: (queue, filter, options) => queue.requeueAll({ state, ...filter }, options),
    })
  },
})
