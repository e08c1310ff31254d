/** `millpond requeue` */
import { stepNumber } from '../../pond/job-steps.ts'
import { BULK, changeJobs, notesOf } from '../bulk.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb } from '../verb.ts'

const STATES = ['dead', 'cancelled'] as const

export const verb = defineVerb({
  name: 'requeue',
  summary: 'retries dead or cancelled jobs: they wait again, with all their attempts',
  operands: ['[ID…]'],
  options: {
    state: { value: 'STATE', help: 'with --queue: dead, unless given, or cancelled' },
    from: { value: 'STEP', help: 'of one job: forgets this step and what was kept after it' },
    ...BULK,
  },
  notes: notesOf({
    all: 'every dead job of the queue',
    more: 'First look: millpond requeue --queue mails --group tenant-7 --error-code TimedOut --dry-run',
  }),
  run(call) {
    const state = call.args.choice('state', STATES)
    const from = call.args.text('from')
    if (from !== undefined && (call.args.operand(0) === undefined || call.args.operand(1) !== undefined)) {
      throw new UsageError('--from is for one job: give one ID')
    }
    return changeJobs(call, {
      action: 'requeue',
      past: 'requeued',
      state,
      stateUnlessGiven: 'dead',
      async one({ pond, store }, id) {
        const forget = from === undefined ? undefined : await stepNumber(store, id, from)
        const { requeued } = await store.operations.requeue({ ids: [id], ...(forget !== undefined && { forget }) })
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
