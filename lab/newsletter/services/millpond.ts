/**
 * With Millpond: the address and the job that will send its mail are committed together, before the answer goes out.
 * `worker.ts`, a process of its own, sends the mail.
 */
import { isMillpondError } from '../../../src/index.ts'
import { openEmails } from '../emails.ts'
import { Subscribers } from '../subscribers.ts'
import type { Service } from './service.ts'

export async function open(folder: string): Promise<Service> {
  const subscribers = new Subscribers(folder)
  const { pond, emails } = await openEmails(folder)

  return {
    async register(email, c) {
      try {
        const { id } = await subscribers.transaction((tx) => {
          subscribers.save(email)
          return emails.push({ email }, { tx })
        })
        return c.json({ id, email }, 202, { location: `/registrations/${id}` })
      } catch (error) {
        if (!isMillpondError(error, 'QueueFull')) throw error
        return c.json({ error: 'too many mails are waiting' }, 503, { 'retry-after': '5' })
      }
    },
    async backlog() {
      const { counts } = await emails.stats()
      return { waiting: counts.scheduled + counts.waiting, running: counts.running }
    },
    state: async (id) => (await pond.job(id))?.state,
  }
}
