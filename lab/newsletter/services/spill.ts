/**
 * Millpond in the memory of the server, with the workers beside it. What is over the queue's size goes to SQLite; SIGTERM hands over everything that
 * waits, and the next process takes it up.
 */
import { join } from 'node:path'
import { isMillpondError, Millpond } from '../../../src/index.ts'
import type { Email } from '../emails.ts'
import { Mailbox } from '../mailbox.ts'
import { LEASE } from '../settings.ts'
import { Subscribers } from '../subscribers.ts'
import type { Bounds, Service } from './service.ts'

export async function open(folder: string, { size, workers }: Bounds): Promise<Service> {
  const subscribers = new Subscribers(folder)
  const mailbox = new Mailbox(folder)
  const spill = `sqlite:${encodeURIComponent(join(folder, 'spill.db'))}`
  const pond = await Millpond.open('memory:', { spill, signals: true })
  const emails = pond.queue<Email>('emails', { capacity: Math.max(1, size), whenFull: 'spill', lease: LEASE })
  emails.work((job, { signal }) => mailbox.send(job.data.email, signal), { concurrency: workers })
  // The answer is given only when the queue has the mail, so the server may end as soon as the pond has handed over.
  return {
    async register(email, c) {
      try {
        subscribers.save(email)
        const { id } = await emails.push({ email })
        return c.json({ id, email }, 202)
      } catch (error) {
        if (!isMillpondError(error)) throw error
        return c.json({ error: 'the service is stopping' }, 503, { 'retry-after': '5' })
      }
    },
    async backlog() {
      const { counts } = await emails.stats()
      return { waiting: counts.scheduled + counts.waiting, running: counts.running }
    },
  }
}
