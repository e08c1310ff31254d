/** The queue, as all processes open it. */
import { Millpond, type Queue } from '../../../src/index.ts'
import { variant } from './variants.ts'

export async function openEmails(name: string, url: string): Promise<{ pond: Millpond; emails: Queue<string> }> {
  const { rate } = variant(name)
  const pond = await Millpond.open(url)
  return { pond, emails: pond.queue<string>('emails', rate === undefined ? {} : { limits: { rate } }) }
}
