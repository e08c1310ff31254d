/**
 * The requests of one connection, one after the other.
 *
 * In HTTP/1.1 a client may send requests before earlier ones are answered (pipelining). Node hands out all of them at
 * once, some 2,000 in 64 KiB. Their answers are sent in order, so a request handled before its turn would only take
 * memory and waiting permits from other clients.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Most unanswered requests of a connection; one more cuts it. Clients that pipeline at all rarely send more, and each takes a few KiB. */
export const MAX_OUTSTANDING = 16

interface Pending {
  outgoing: ServerResponse
  begin: () => void
}

/** The unanswered requests of each connection; the first one is being handled. */
const outstanding = new WeakMap<Socket, Pending[]>()

/** Whether one more request would be too many for the connection. */
export function isFull(socket: Socket): boolean {
  return (outstanding.get(socket)?.length ?? 0) >= MAX_OUTSTANDING
}

/**
 * Calls `begin` when the earlier requests of the connection are answered; at once if there are none, or this one has begun. Never calls it
 * if the connection is gone by then, or is cut here because of too many requests.
 */
export function inTurn(incoming: IncomingMessage, outgoing: ServerResponse, begin: () => void): void {
  const { socket } = incoming
  // The server's `maxConcurrentStreams` bounds the streams of HTTP/2; an answer that was sent has no end to wait for.
  if (incoming.httpVersionMajor > 1 || outgoing.writableFinished) {
    begin()
    return
  }
  if (isOver(socket)) return
  const queue = outstanding.get(socket) ?? []
  outstanding.set(socket, queue)
  if (queue[0]?.outgoing === outgoing) begin()
  else if (isFull(socket)) socket.destroy()
  else if (queue.push({ outgoing, begin }) === 1) beginFirst(queue, socket)
}

function beginFirst(queue: Pending[], socket: Socket): void {
  const [first] = queue
  if (first === undefined) return
  const over = () => {
    if (queue[0] !== first) return
    queue.shift()
    if (isOver(socket)) queue.length = 0
    else beginFirst(queue, socket)
  }
  first.outgoing.once('finish', over).once('close', over)
  first.begin()
}

/** Whether the connection is gone, or closing after its last answer. */
function isOver({ destroyed, writable }: Socket): boolean {
  return destroyed || !writable
}
