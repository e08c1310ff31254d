/** `millpond remove` */
import { JOB_STATES } from '../../values/jobs/records.ts'
import { jsonText } from '../../web/answer.ts'
import { acted } from '../acted.ts'
import { BULK, changeJobs, NEEDS_YES, notesOf } from '../bulk.ts'
import { counted } from '../figures.ts'
import { FILTERS } from '../filters.ts'
import { knownQueue, withStore } from '../open.ts'
import { UsageError } from '../usage-error.ts'
import { type Call, defineVerb, EXIT } from '../verb.ts'

const OPTIONS = {
  state: { value: 'STATE', help: `${JOB_STATES.join(', ')}; needed with --queue` },
  ...BULK,
  'whole-queue': { help: 'with --queue alone: every job, the settings, groups, figures, and the queue' },
} as const

export const verb = defineVerb<keyof typeof OPTIONS>({
  name: 'remove',
  summary: 'removes jobs, or a whole queue, as if they had never been pushed',
  operands: ['[ID…]'],
  options: OPTIONS,
  notes: notesOf({
    all: 'every job of that state',
    more: 'Running jobs are removed, too: their handlers are told to stop, and what they answer does not count.',
  }),
  run(call) {
    const { args } = call
    if (args.flag('whole-queue')) return removeQueue(call)
    const state = args.choice('state', JOB_STATES)
    const needed = () => {
      if (state === undefined) throw new UsageError('--state is missing: removal is of one state at a time')
      return state
    }
    if (args.text('queue') !== undefined) needed()
    return changeJobs(call, {
      action: 'remove',
      past: 'removed',
      state,
      async one({ store }, id) {
        const { removed } = await store.operations.remove({ ids: [id] })
        return removed === 1 ? undefined : 'is not known'
      },
      all: (queue, filter, options) => queue.removeAll({ state: needed(), ...filter }, options),
      preview: (queue, filter, options) => queue.removeAll({ state: needed(), ...filter }, options),
    })
  },
})

/** What would leave a part of the queue. */
const PARTIAL = ['state', 'limit', 'after', ...(Object.keys(FILTERS) as (keyof typeof FILTERS)[])] as const

async function removeQueue({ args, terminal }: Call<keyof typeof OPTIONS>): Promise<number> {
  const partial = PARTIAL.find((option) => args.text(option) !== undefined)
  if (args.operand(0) !== undefined || partial !== undefined) {
    const given = partial === undefined ? 'an ID' : `--${partial}`
    throw new UsageError(`--whole-queue removes everything, and goes with --queue alone: leave out it or ${given}`)
  }
  if (args.text('queue') === undefined) throw new UsageError('--whole-queue needs --queue NAME')
  return withStore(args, async (opened) => {
    const queue = await knownQueue(opened, args.text('queue'))
    const { counts } = await queue.stats()
    const count = Object.values(counts).reduce((sum, one) => sum + one, 0)
    if (args.flag('dry-run') || !args.flag('yes')) {
      if (args.flag('json')) terminal.out(`${jsonText({ count })}\n`)
      else terminal.out(`${counted(count, 'job')}. Nothing was changed.\n`)
      if (args.flag('dry-run')) return EXIT.done
      terminal.err(NEEDS_YES)
      return EXIT.refused
    }
    const changed = await opened.pond.removeQueue(queue.name)
    await acted(opened, terminal, { action: 'removeQueue', queue: queue.name, count: changed })
    terminal.out(
      args.flag('json') ? `${jsonText({ changed })}\n` : `${queue.name} and ${counted(changed, 'job')} removed.\n`,
    )
    return EXIT.done
  })
}
