/** The usual remedy, and the published one: a bounded queue in the memory of the server, and many workers beside it. */
import { Mailbox } from '../mailbox.ts'
import { Subscribers } from '../subscribers.ts'
import type { Bounds, Service } from './service.ts'

export function open(folder: string, { size, workers }: Bounds): Service {
  const subscribers = new Subscribers(folder)
  const mailbox = new Mailbox(folder)
  const queue: string[] = []
  let running = 0

  async function work(): Promise<void> {
    running++
    for (let email = queue.shift(); email !== undefined; email = queue.shift()) await mailbox.send(email)
    running--
  }

  return {
    register(email, c) {
      if (queue.length >= size) return c.json({ error: 'too many mails are waiting' }, 503, { 'retry-after': '5' })
      subscribers.save(email)
      queue.push(email)
      if (running < workers) void work()
      return c.json({ email }, 202)
    },
    backlog: () => ({ waiting: queue.length, running }),
  }
}
