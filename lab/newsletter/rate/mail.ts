/** Hands mails to the mail server, each on a connection that is free or new. */
import { Agent, request } from 'node:http'

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** @returns whether the server has taken it; false: it refuses mails for now */
export function send(port: number, to: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, method: 'POST', agent, headers: { to } }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode !== 429))
      response.on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
