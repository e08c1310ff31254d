/** `millpond pause` */
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { knownQueue, withStore } from '../open.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'pause',
  summary: 'stops claims of queues in every process; pushes go on',
  operands: ['QUEUE…'],
  options: { ...STORE, ...JSON_LINES },
  run: ({ args, terminal }) =>
    withStore(args, async (opened) => {
      const queues = []
      // All are looked at before one is changed.
      for (const name of args.operandsFrom(0)) queues.push(await knownQueue(opened, name))
      for (const queue of queues) {
        await queue.pause()
        terminal.out(
          args.flag('json') ? `${jsonText({ queue: queue.name, paused: true })}\n` : `${queue.name} is paused.\n`,
        )
      }
      return EXIT.done
    }),
})
