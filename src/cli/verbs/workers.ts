/** `millpond workers` */
import { defined } from '../../values/options.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { ago, grouped } from '../figures.ts'
import { knownQueue, withStore } from '../open.ts'
import { table } from '../table.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'workers',
  summary: 'the workers heard of in the last minute: where, since when, how busy',
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
      const rows = workers.map(({ queue, host, pid, busy, slots, since, seen, id }) => [
        ...[queue, host, String(pid), `${grouped(busy)}/${grouped(slots)}`, ago(since), ago(seen), id],
      ])
      terminal.out(table(terminal, ['queue', 'host', 'pid', 'busy', 'since', 'seen', 'id'], rows, { text: [1, 6] }))
    }
    return EXIT.done
  },
})
