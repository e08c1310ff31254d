/** Hands mails to the mail server, each on a connection that is free or new. */
import { Agent, request } from 'node:http'

const HELLOS = 50
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

/** Says hello, which is no mail: a connection is open and the code is warm when the first mail goes out. */
export async function hello(port: number): Promise<void> {
  for (let n = 0; n < HELLOS; n++) await answer(port, 'HEAD', {})
}

/** @returns whether the server has taken it; false: it refuses mails for now */
export async function send(port: number, to: string): Promise<boolean> {
  return (await answer(port, 'POST', { to })) !== 429
}

/** @returns the status */
function answer(port: number, method: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, method, agent, headers }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
      response.on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
