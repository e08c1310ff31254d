/** `millpond explain` */
import { isId } from '../../values/jobs/ids.ts'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { type Explained, explainedJob, explainedQueue } from '../explained.ts'
import { knownQueue, withStore } from '../open.ts'
import { plain } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'explain',
  summary: 'why a job, the jobs of a queue or those of all queues wait, and what helps',
  operands: ['[ID|QUEUE]'],
  options: { ...STORE, ...JSON_LINES },
  notes: 'Of a queue it looks at the job that is next, and at groups that are at their limit.',
  async run({ args, terminal }) {
    const given = args.operand(0)
    const all = await withStore(args, async (opened) => {
      if (given !== undefined && isId(given)) return [await explainedJob(opened.pond, given)]
      if (given !== undefined) return [await explainedQueue(opened.pond, await knownQueue(opened, given))]
      const waiting = (await opened.pond.stats()).filter(
        ({ counts }) => counts.waiting + counts.scheduled + counts.blocked > 0,
      )
      const found: Explained[] = []
      for (const { queue } of waiting) found.push(await explainedQueue(opened.pond, opened.pond.queue(queue)))
      return found
    })
    if (args.flag('json')) for (const one of all) terminal.out(`${jsonText(one)}\n`)
    else if (all.length === 0) terminal.out('No job waits.\n')
    else for (const one of all) show(terminal, one, all.length > 1 || one.id === undefined)
    return EXIT.done
  },
})

function show(terminal: Terminal, { queue, lines, actions }: Explained, named: boolean): void {
  if (named) terminal.out(`${queue}\n`)
  const indent = named ? '  ' : ''
  for (const line of lines) terminal.out(`${indent}${plain(line)}\n`)
  for (const action of actions) terminal.out(`${indent}→ ${plain(action)}\n`)
}
