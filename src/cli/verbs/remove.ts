/** `millpond remove` */
import { JOB_STATES } from '../../values/records.ts'
import { jsonText } from '../../web/answer.ts'
import { acted } from '../acted.ts'
import { BULK, changeJobs, YES } from '../bulk.ts'
import { counted } from '../figures.ts'
import { knownQueue, withStore } from '../open.ts'
import { UsageError } from '../usage-error.ts'
import { type Call, defineVerb, EXIT } from '../verb.ts'

const OPTIONS = {
  state: { value: 'STATE', help: `with --queue: ${JOB_STATES.join(', ')}` },
  ...BULK,
  'whole-queue': { help: 'with --queue: every job, the settings, groups, figures, and the queue' },
  ...YES,
} as const

export const verb = defineVerb<keyof typeof OPTIONS>({
  name: 'remove',
  summary: 'removes jobs, or a whole queue, as if they had never been pushed',
  operands: ['[ID…]'],
  options: OPTIONS,
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
      isAllowed: args.flag('yes'),
      async one({ store }, id) {
        const { removed } = await store.operations.remove({ ids: [id] })
        return removed === 1 ? undefined : 'is not known'
      },
      all: (queue, filter, options) => queue.removeAll({ state: needed(), ...filter }, options),
      preview: (queue, filter, options) => queue.removeAll({ state: needed(), ...filter }, options),
    })
  },
})

async function removeQueue({ args, terminal }: Call<keyof typeof OPTIONS>): Promise<number> {
  if (args.operand(0) !== undefined || args.text('state') !== undefined) {
    throw new UsageError('--whole-queue goes with --queue alone')
  }
  return withStore(args, async (opened) => {
    const queue = await knownQueue(opened, args.text('queue'))
    const { counts } = await queue.stats()
    const count = Object.values(counts).reduce((sum, one) => sum + one, 0)
    if (args.flag('dry-run') || !args.flag('yes')) {
      if (args.flag('json')) terminal.out(`${jsonText({ count })}\n`)
      else terminal.out(`${counted(count, 'job')}. Nothing was changed.\n`)
      if (args.flag('dry-run')) return EXIT.done
      terminal.err('millpond: this cannot be undone: give --yes to do it\n')
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
