/** `millpond resume` */
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES, STORE } from '../arguments.ts'
import { knownQueue, withStore } from '../open.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'resume',
  summary: 'allows claims of queues again',
  operands: ['QUEUE…'],
  options: { ...STORE, ...JSON_LINES },
  run: ({ args, terminal }) =>
    withStore(args, async (opened) => {
      const queues = []
      // All are looked at before one is changed.
      for (const name of args.operandsFrom(0)) queues.push(await knownQueue(opened, name))
      for (const queue of queues) {
        await queue.resume()
        terminal.out(
          args.flag('json') ? `${jsonText({ queue: queue.name, paused: false })}\n` : `${queue.name} is resumed.\n`,
        )
      }
      return EXIT.done
    }),
})
