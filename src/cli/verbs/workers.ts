/** `millpond workers` */

import { lanesText, silentFor } from '../../values/figures/worker-text.ts'
import { defined } from '../../values/options/options.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { ago, counted, grouped, lasting, NONE } from '../figures.ts'
import { knownQueue, withStore } from '../open.ts'
import { table } from '../table.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'workers',
  summary: 'the workers heard of in the last minute: where, since when, how busy, which are silent',
  operands: ['[QUEUE]'],
  options: { ...STORE, ...JSON_LINES },
  async run({ args, terminal }) {
    const given = args.operand(0)
    const workers = await withStore(args, async (opened) => {
      const queue = given === undefined ? undefined : (await knownQueue(opened, given)).name
      return opened.pond.workers(defined({ queue }))
    })
    if (args.flag('json')) for (const worker of workers) terminal.out(`${jsonText(worker)}\n`)
    else if (workers.length === 0) terminal.out('No worker was heard of in the last minute.\n')
    else {
      const hasLanes = workers.some(({ lanes }) => lanes !== null)
      const rows = workers.map(({ queue, host, pid, busy, slots, since, silence, silent, lanes, id }) => [
        ...[queue, host, String(pid), `${grouped(busy)}/${grouped(slots)}`, ago(since)],
        silent ? silentFor(silence) : `${lasting(silence)} ago`,
        ...(hasLanes ? [lanes === null ? NONE : lanesText(lanes, slots)] : []),
        id,
      ])
      const heads = ['queue', 'host', 'pid', 'busy', 'since', 'last heard', ...(hasLanes ? ['lanes'] : []), 'id']
      terminal.out(table(terminal, heads, rows, { text: hasLanes ? [1, 6, 7] : [1, 6] }))
      const silent = workers.filter((one) => one.silent).length
      if (silent > 0) {
        terminal.out(
          `${counted(silent, 'worker has', 'workers have')} missed two heartbeats, and may have been killed: ` +
            `${silent === 1 ? 'its' : 'their'} jobs come back when their leases end.\n`,
        )
      }
    }
    return EXIT.done
  },
})
