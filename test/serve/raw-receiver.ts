/** A receiver over a bare socket, for answers that no HTTP server would give. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface RawReceiver {
  origin: string
  /** How many connections there were. */
  readonly connections: number
  close(): Promise<void>
}

/**
 * @param heard called with each request, once its head and body are there, and how many there were before it on this connection; the connection
 *   stays open unless it is ended here
 */
export async function rawReceiver(
  heard: (socket: Socket, request: string, before: number) => void,
  host = '127.0.0.1',
): Promise<RawReceiver> {
  const open = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections++
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => {})
    let text = ''
    let before = 0
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      for (let end = endOf(text); end !== undefined && end <= text.length; end = endOf(text)) {
        const request = text.slice(0, end)
        text = text.slice(end)
        heard(socket, request, before++)
      }
    })
  })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    get connections() {
      return connections
    },
    close: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Where the first request in the text ends; undefined before its head is there. */
function endOf(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  return head + 4 + Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0)
}
