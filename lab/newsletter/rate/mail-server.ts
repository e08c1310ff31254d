/**
 * A mail server with a rate limit. A mail takes 5 s; one that comes when 200 were taken within the last second is refused at once, with 429, as a mail server's 451
 * says it. The window slides, so that no second, wherever it begins, may have more.
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '../../bench/contender.ts'
import { MAIL_TAKES } from '../settings.ts'
import type { Book } from './messages.ts'
import { LIMIT, RETRY_AFTER } from './settings.ts'

const SECOND = 1000
const book: Book = { accepted: [], refused: 0, busiest: 0, delivered: 0 }
/** When the mails of the last second came, all of them. */
const arrivals: number[] = []

const server = createServer(async (request, response) => {
  const now = machineTime()
  while (arrivals[0] !== undefined && arrivals[0] <= now - SECOND) arrivals.shift()
  arrivals.push(now)
  book.busiest = Math.max(book.busiest, arrivals.length)
  const oldest = book.accepted.at(-LIMIT)
  if (oldest !== undefined && oldest.at > now - SECOND) {
    book.refused++
    response.writeHead(429, { 'retry-after': String(RETRY_AFTER / 1000) }).end()
    return
  }
  book.accepted.push({ at: now, to: request.headers.to?.toString() ?? '' })
  await sleep(MAIL_TAKES)
  book.delivered++
  response.writeHead(200).end()
})
server.listen(0, '127.0.0.1', 5000, () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port })
})
process.on('message', () => process.send?.(book))
process.once('disconnect', () => process.exit(0))
