/**
 * A mail server with a rate limit: `mail-server.ts COUNTING`. A mail takes 5 s. A mail above the limit is refused at once with 429,
 * as a mail server does with 451.
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '../../clock.ts'
import { listen } from '../../role.ts'
import { MAIL_TAKES } from '../settings.ts'
import { ALLOWANCES } from './allowance.ts'
import type { Book } from './messages.ts'
import { RETRY_AFTER } from './settings.ts'

const allow = ALLOWANCES[process.argv[2] === 'window' ? 'window' : 'bucket']()
const book: Book = { accepted: [], refused: 0, busiest: 0, delivered: 0 }
/** When the mails of the last second came, taken or not. */
const arrivals: number[] = []

const server = createServer(async (request, response) => {
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  const now = machineTime()
  while (arrivals[0] !== undefined && arrivals[0] <= now - 1000) arrivals.shift()
  arrivals.push(now)
  book.busiest = Math.max(book.busiest, arrivals.length)
  if (!allow(now)) {
    book.refused++
    response.writeHead(429, { 'retry-after': String(RETRY_AFTER / 1000) }).end()
    return
  }
  book.accepted.push({ at: now, to: request.headers.to?.toString() ?? '' })
  await sleep(MAIL_TAKES)
  book.delivered++
  response.writeHead(200).end()
})
listen(server, () => book)
