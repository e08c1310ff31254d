/**
 * The upstream: it takes about 200 ms for a call, however many there are at once, and counts the calls.
 * It ends with the process that started it.
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listen } from '../role.ts'
import { median } from '../statistics.ts'
import { ANSWER } from './answer.ts'
import type { UpstreamTally } from './messages.ts'

const TAKES = 200
const body = JSON.stringify(ANSWER)
let calls = 0
let open = 0
let atOnce = 0
const times: number[] = []

const server = createServer(async (_, response) => {
  const began = performance.now()
  calls++
  open++
  atOnce = Math.max(atOnce, open)
  await sleep(TAKES)
  open--
  response.setHeader('content-type', 'application/json').end(body)
  times.push(performance.now() - began)
})
// A connection is not closed on a caller who is about to use it again.
server.keepAliveTimeout = 600_000
listen(server, (): UpstreamTally => ({ calls, open, atOnce, ms: median(times) }))
