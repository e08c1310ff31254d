/** What `millpond pause` and `millpond resume` do. */
import { jsonText } from '../web/answer.ts'
import { acted } from './acted.ts'
import { knownQueue, withStore } from './open.ts'
import { type Call, EXIT } from './verb.ts'

export function setPaused({ args, terminal }: Call<'store' | 'json'>, paused: boolean): Promise<number> {
  return withStore(args, async (opened) => {
    const queues = []
    // All are looked at before one is changed.
    for (const name of args.operandsFrom(0)) queues.push(await knownQueue(opened, name))
    for (const queue of queues) {
      await (paused ? queue.pause() : queue.resume())
      await acted(opened, terminal, { action: paused ? 'pause' : 'resume', queue: queue.name })
      const text = `${queue.name} is ${paused ? 'paused' : 'resumed'}.`
      terminal.out(`${args.flag('json') ? jsonText({ queue: queue.name, paused }) : text}\n`)
    }
    return EXIT.done
  })
}
