import type { Server } from 'node:http'

/** As many connections may come at once as the system lets wait; Node's own 511 would have the others try again a second later. */
const BACKLOG = 4096

/** Tells the process that started this one, and ends with it. */
export function listen(server: Server): void {
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
    const address = server.address()
    process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
  })
  process.once('disconnect', () => process.exit(0))
}
