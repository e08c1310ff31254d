/** What every process of a run does: it says that it is ready, answers its parent, and ends with it. */
import type { Server } from 'node:http'

/** Connections that may wait to be accepted. With Node's own 511, other clients would try again a second later. */
const BACKLOG = 4096

/** Without a channel to a parent, it says so in a line. @param answer gets every message that comes, and its result is sent */
export function ready(answer?: (message: unknown) => unknown, port = 0): void {
  process.once('disconnect', () => process.exit(0))
  if (answer !== undefined) process.on('message', async (message) => process.send?.(await answer(message)))
  if (process.send === undefined) console.log('ready')
  else process.send({ port })
}

/** Listens on a free port, and then says that it is ready. */
export function listen(server: Server, answer?: () => unknown): void {
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
    const address = server.address()
    ready(answer, typeof address === 'object' && address !== null ? address.port : 0)
  })
}
