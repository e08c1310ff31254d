/** The queue, as the server and the worker both open it: in the service's own database file. */
import { join } from 'node:path'
import { Millpond, type Queue } from '../../src/index.ts'
import { LEASE, QUEUE_SIZE } from './settings.ts'
import { DATABASE } from './subscribers.ts'

export interface Email {
  email: string
}

export async function openEmails(folder: string): Promise<{ pond: Millpond; emails: Queue<Email> }> {
  const pond = await Millpond.open(`sqlite:${encodeURIComponent(join(folder, DATABASE))}`)
  return { pond, emails: pond.queue<Email>('emails', { capacity: QUEUE_SIZE, whenFull: 'reject', lease: LEASE }) }
}
