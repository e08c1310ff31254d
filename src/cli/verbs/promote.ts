/** `millpond promote` */
import { BULK, changeJobs, notesOf } from '../bulk.ts'
import { defineVerb } from '../verb.ts'

export const verb = defineVerb({
  name: 'promote',
  summary: 'lets scheduled jobs wait from now on, whatever their due time',
  operands: ['[ID…]'],
  options: BULK,
  notes: notesOf({ all: 'every scheduled job of the queue' }),
  run: (call) =>
    changeJobs(call, {
      action: 'promote',
      past: 'wait now',
      stateUnlessGiven: 'scheduled',
      async one({ store }, id) {
        const [outcome] = await store.operations.update({ items: [{ id, delay: 0 }] })
        if (outcome === 'updated') return undefined
        return outcome === null || outcome === undefined ? 'is not known' : `is ${outcome}`
      },
      all: (queue, filter, options) => queue.promoteAll(filter, options),
      preview: (queue, filter, options) => queue.promoteAll(filter, options),
    }),
})
