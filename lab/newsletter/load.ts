/**
 * The load generator, a process of its own: `load.ts PORT REQUESTS`.
 *
 * An open loop, as in the published run (vegeta): request n leaves at n ÷ RATE seconds, however many are still unanswered,
 * each on a free connection or a new one. Why none from npm: autocannon's rate is a ceiling on closed loops. At 100/s
 * and answers that take 5.0 s it sent 20/s and showed a median of 2.5 s. loadtest does keep the rate, but counts in whole milliseconds
 * and brings a native module that wants a compiler on some machines, and `npm ci` must do with npm.
 */
import { Agent, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { ready } from '../role.ts'
import { type Outcome, tell } from './messages.ts'
import { CLIENT_TIMEOUT, RATE } from './settings.ts'

const [port = '', requests = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** Never rejects: whatever happens is an outcome. */
function register(email: string): Promise<Outcome> {
  const body = new URLSearchParams({ email }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length }
  const signal = AbortSignal.timeout(CLIENT_TIMEOUT)
  const sentAt = performance.now()
  return new Promise((resolve) => {
    const end = (status: number | string) => resolve({ email, status, ms: performance.now() - sentAt })
    const failed = (error: NodeJS.ErrnoException) => end(signal.aborted ? 'time-out' : (error.code ?? error.message))
    request({ host: '127.0.0.1', port, path: '/register', method: 'POST', agent, headers, signal }, (response) => {
      response.on('error', failed)
      response.on('end', () => end(response.statusCode ?? 'no status'))
      response.resume()
    })
      .on('error', failed)
      .end(body)
  })
}

const count = { sent: 0, accepted: 0, failed: 0 }
const ticker = setInterval(() => tell({ kind: 'load', ...count }), 100)
const outcomes: Promise<Outcome>[] = []
ready()
const start = performance.now()
let behind = 0
for (let n = 0; n < Number(requests); n++) {
  const due = start + (n * 1000) / RATE
  const early = due - performance.now()
  if (early > 0) await setTimeout(early)
  behind = Math.max(behind, performance.now() - due)
  count.sent++
  const outcome = register(`reader-${n + 1}@readers.example`)
  outcomes.push(outcome)
  void outcome.then(({ status }) => count[isAccepted(status) ? 'accepted' : 'failed']++)
}
const all = await Promise.all(outcomes)
tell({ kind: 'load', ...count })
tell({ kind: 'done', outcomes: all, behind })
clearInterval(ticker)
agent.destroy()

function isAccepted(status: number | string): boolean {
  return typeof status === 'number' && status >= 200 && status < 300
}
