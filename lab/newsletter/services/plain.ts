/** The plain handler: whoever registers waits for the mail server. */
import { Mailbox } from '../mailbox.ts'
import { Subscribers } from '../subscribers.ts'
import type { Service } from './service.ts'

export function open(folder: string): Service {
  const subscribers = new Subscribers(folder)
  const mailbox = new Mailbox(folder)
  let running = 0

  return {
    async register(email, c) {
      subscribers.save(email)
      running++
      try {
        await mailbox.send(email)
      } finally {
        running--
      }
      return c.json({ email }, 200)
    },
    backlog: () => ({ waiting: 0, running }),
  }
}
