/** `millpond requeue` */
import { BULK, changeJobs, notesOf } from '../bulk.ts'
import { defineVerb } from '../verb.ts'

const STATES = ['dead', 'cancelled'] as const

export const verb = defineVerb({
  name: 'requeue',
  summary: 'retries dead or cancelled jobs: they wait again, with all their attempts',
  operands: ['[ID…]'],
  options: { state: { value: 'STATE', help: 'with --queue: dead, unless given, or cancelled' }, ...BULK },
  notes: notesOf({
    all: 'every dead job of the queue',
    more: 'First look: millpond requeue --queue mails --group tenant-7 --error-code TimedOut --dry-run',
  }),
  run(call) {
    const state = call.args.choice('state', STATES)
    return changeJobs(call, {
      action: 'requeue',
      past: 'requeued',
      state,
      stateUnlessGiven: 'dead',
      async one({ pond, store }, id) {
        const { requeued } = await store.operations.requeue({ ids: [id] })
        if (requeued === 1) return undefined
        const state = (await pond.job(id))?.state
        if (state === undefined) return 'is not known'
        const isOver = state === 'dead' || state === 'cancelled'
        return isOver ? 'stays as it is: a live job has its key' : `is ${state}, neither dead nor cancelled`
      },
      all: (queue, filter, options) => queue.requeueAll({ state, ...filter }, options),
      preview: (queue, filter, options) => queue.requeueAll({ state, ...filter }, options),
    })
  },
})
