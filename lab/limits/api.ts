/** An API that takes five requests a second: a bucket of as many, which fills up again evenly. Beyond that it answers 429. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { machineTime } from '../clock.ts'

export const ALLOWED = 5

export interface Api {
  url: string
  /** When requests came, in ms. */
  arrivals: number[]
  refused: number
  close(): void
}

export async function startApi(): Promise<Api> {
  let left = ALLOWED
  let filledAt = machineTime()
  const server = createServer((request, response) => {
    const now = machineTime()
    left = Math.min(ALLOWED, left + ((now - filledAt) / 1000) * ALLOWED)
    filledAt = now
    api.arrivals.push(now)
    const isAllowed = left >= 1
    if (isAllowed) left--
    else api.refused++
    request.resume()
    response.writeHead(isAllowed ? 200 : 429, isAllowed ? {} : { 'retry-after': '1' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const api: Api = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals: [],
    refused: 0,
    close: () => void server.close(),
  }
  return api
}
