/** `millpond update` */
import type { UpdateOptions } from '../../pond/update.ts'
import { defined } from '../../values/options/options.ts'
import { BULK, changeJobs, notesOf } from '../bulk.ts'
import { jsonData } from '../json-data.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb } from '../verb.ts'

const STATES = ['blocked', 'scheduled', 'waiting'] as const
const OPTIONS = {
  priority: { value: 'N', help: '0 to 9, higher first' },
  delay: { value: 'TIME', help: 'due after this time from now' },
  'run-at': { value: 'TIME', help: 'due then, such as 2026-03-01T04:00Z' },
  state: { value: 'STATE', help: 'blocked, scheduled or waiting; needed with --queue' },
  ...BULK,
  data: { value: 'JSON', help: 'of jobs named by ID; - reads it from the standard input' },
} as const

export const verb = defineVerb<keyof typeof OPTIONS>({
  name: 'update',
  summary: 'changes the priority, due time or data of jobs that do not run yet',
  operands: ['[ID…]'],
  options: OPTIONS,
  notes: notesOf({
    all: 'every job of that state',
    more: 'Data are not checked by the schema of the code that pushes them.',
  }),
  async run(call) {
    const { args, terminal } = call
    const state = args.choice('state', STATES)
    const set = {
      priority: args.whole('priority', 0, 9),
      delay: args.duration('delay'),
      runAt: args.date('run-at'),
    }
    const given = args.text('data')
    if (given !== undefined && args.text('queue') !== undefined) throw new UsageError('--data goes with IDs alone')
    if (set.delay !== undefined && set.runAt !== undefined) throw new UsageError('give --delay or --run-at, not both')
    const change: UpdateOptions = defined({ ...set, data: await jsonData(terminal, given) })
    if (Object.keys(change).length === 0)
      throw new UsageError('nothing to change: give --priority, --delay, --run-at or --data')
    const needed = () => {
      if (state === undefined) throw new UsageError('--state is missing: blocked, scheduled or waiting')
      return state
    }
    if (args.text('queue') !== undefined) needed()
    return changeJobs(call, {
      action: 'update',
      past: 'changed',
      state,
      hasData: true,
      async one({ pond }, id) {
        const job = await pond.job(id)
        if (job === undefined) return 'is not known'
        const outcome = await pond.queue(job.queue).update(id, change)
        return outcome === 'updated' ? undefined : `is ${outcome ?? 'not known'}`
      },
      all: (queue, filter, options) => queue.updateAll({ state: needed(), ...filter }, defined(set), options),
      preview: (queue, filter, options) => queue.updateAll({ state: needed(), ...filter }, defined(set), options),
    })
  },
})
