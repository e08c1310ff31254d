/**
 * The requests of one connection, one after the other.
 *
 * In HTTP/1.1 a client may send requests before earlier ones are answered (pipelining). Node hands out all of them at once, some 2,000 in
 * 64 KiB. Their answers are sent in order, so a request handled before its turn would only take memory and waiting slots from other clients.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Most unanswered requests of a connection; one more cuts it. Clients that pipeline at all rarely send more, and each takes a few KiB. */
export const MAX_OUTSTANDING = 16

interface Turn {
  outgoing: ServerResponse
  begin: () => void
}

interface Line {
  current: ServerResponse | undefined
  waiting: Turn[]
}

const lines = new WeakMap<Socket, Line>()

/** Whether one more request would be too many for the connection. */
export function isFull(socket: Socket): boolean {
  const line = lines.get(socket)
  return line !== undefined && line.waiting.length + 1 >= MAX_OUTSTANDING
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
  const line = lines.get(socket) ?? { current: undefined, waiting: [] }
  lines.set(socket, line)
  if (line.current === outgoing) begin()
  else if (line.current === undefined) start(line, { outgoing, begin }, socket)
  else if (isFull(socket)) socket.destroy()
  else line.waiting.push({ outgoing, begin })
}

function start(line: Line, { outgoing, begin }: Turn, socket: Socket): void {
  line.current = outgoing
  const over = () => {
    if (line.current !== outgoing) return
    line.current = undefined
    const next = line.waiting.shift()
    if (isOver(socket)) line.waiting = []
    else if (next !== undefined) start(line, next, socket)
  }
  outgoing.once('finish', over).once('close', over)
  begin()
}

/** Whether the connection is gone, or closing after its last answer. */
function isOver({ destroyed, writable }: Socket): boolean {
  return destroyed || !writable
}
