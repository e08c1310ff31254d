/** One variant: mails wait, senders begin, and the mail server's book tells what came of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../../child.ts'
import { MAIL_TAKES } from '../settings.ts'
import { address } from './addresses.ts'
import { openEmails } from './emails.ts'
import { type Book, isBook } from './messages.ts'
import { LIMIT, PROCESSES } from './settings.ts'
import { type VariantName, variant } from './variants.ts'

const POLL = 500
const BEGINNING = 1000

export interface Outcome {
  /** Mails that the server took, per second, from a second after the first one to the last: what may come at once has come by then. */
  rate: number
  /** Most mails that came to the server within any second. */
  busiest: number
  refused: number
  /** Addresses that got no mail until we no longer waited, and mails beyond the first to the same address. */
  missing: number
  twice: number
}

/** @param mails how many wait when the senders begin */
export async function run(name: VariantName, mails: number, url: string): Promise<Outcome> {
  const server = await Child.start(new URL('mail-server.ts', import.meta.url), [variant(name).counting])
  if (variant(name).store !== 'array') await push(name, mails, url)
  const share = Math.ceil(mails / PROCESSES)
  const senders = await Promise.all(
    Array.from({ length: PROCESSES }, (_, n) => {
      const own = [n * share, Math.min(mails, (n + 1) * share)]
      return Child.start(new URL('sender.ts', import.meta.url), [name, url, String(server.port), ...own.map(String)])
    }),
  )
  try {
    const end = performance.now() + 3 * ((mails / LIMIT) * 1000 + MAIL_TAKES)
    let book: Book
    do {
      await sleep(POLL)
      book = await server.tell(isBook)
    } while (book.delivered < mails && performance.now() < end)
    return outcome(book, mails)
  } finally {
    await Promise.all(senders.map((sender) => sender.stop()))
    await server.stop()
  }
}

async function push(name: VariantName, mails: number, url: string): Promise<void> {
  const { pond, emails } = await openEmails(name, url)
  await emails.pushMany(Array.from({ length: mails }, (_, n) => address(n)))
  await pond.close()
}

function outcome({ accepted, refused, busiest }: Book, mails: number): Outcome {
  const steady = accepted.filter(({ at }) => at > (accepted[0]?.at ?? 0) + BEGINNING)
  const took = (steady.at(-1)?.at ?? 0) - (steady[0]?.at ?? 0)
  const readers = new Set(accepted.map(({ to }) => to)).size
  return {
    rate: ((steady.length - 1) / took) * 1000,
    busiest,
    refused,
    missing: mails - readers,
    twice: accepted.length - readers,
  }
}
