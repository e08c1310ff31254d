/** What every process of a run does for the one that started it: says that it is ready, answers when asked, and ends with it. */
import type { Server } from 'node:http'

/** As many connections may come at once as the system lets wait; Node's own 511 would have others try again a second later. */
const BACKLOG = 4096

/** @param answer to whatever message comes */
export function ready(answer?: () => unknown, port = 0): void {
  process.once('disconnect', () => process.exit(0))
  if (answer !== undefined) process.on('message', async () => process.send?.(await answer()))
  process.send?.({ port })
}

/** Ready once the server listens, on a port that is free. */
export function listen(server: Server, answer?: () => unknown): void {
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
    const address = server.address()
    ready(answer, typeof address === 'object' && address !== null ? address.port : 0)
  })
}
