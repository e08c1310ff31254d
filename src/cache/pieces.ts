/** Bodies that are too large for one string: Redis' end at 512 MB, and long before that one command holds up all others. */
import type { Stored } from './stored.ts'

/** What goes into one command. Redis copies it twice within a script, and does nothing else meanwhile. */
export const PIECE = 16 * 1024 * 1024
/** How long the pieces outlive their value, so that a reader that has begun can end. */
const LONGER = 60_000

export interface PieceClient {
  get(name: string): Promise<Buffer | null>
  set(name: string, piece: Buffer, life: number): Promise<void>
  remove(name: string): Promise<void>
}

const nameOf = (prefix: string, { version }: Stored, piece: number): string =>
  `${prefix}${Buffer.from(version, 'latin1').toString('hex')}:${piece}`

/** One after the other, so that no more than one is in the client's buffers. @returns how many there are */
export async function storePieces(client: PieceClient, prefix: string, stored: Stored, life: number): Promise<number> {
  const { body } = stored
  let piece = 0
  for (let at = 0; at < body.length; at += PIECE) {
    await client.set(nameOf(prefix, stored, piece), body.subarray(at, at + PIECE), life + LONGER)
    piece++
  }
  return piece
}

/** Of a value that was not stored after all. */
export async function removePieces(client: PieceClient, prefix: string, stored: Stored, pieces: number): Promise<void> {
  await Promise.all(Array.from({ length: pieces }, (_, piece) => client.remove(nameOf(prefix, stored, piece))))
}

/**
 * @returns undefined where a piece is missing
 * @throws RangeError where the head does not fit the pieces
 */
export async function fetchPieces(client: PieceClient, prefix: string, stored: Stored): Promise<Buffer | undefined> {
  const { pieces, size } = stored
  if (size > pieces * PIECE || size <= (pieces - 1) * PIECE) throw new RangeError(`${size} bytes in ${pieces} pieces`)
  // The head is believed for no more than what it has shown to be there.
  const first = await client.get(nameOf(prefix, stored, 0))
  if (first === null) return undefined
  if (first.length !== Math.min(size, PIECE)) throw new RangeError(`a piece of ${first.length} bytes`)
  const body = Buffer.allocUnsafe(size)
  first.copy(body)
  for (let piece = 1; piece < pieces; piece++) {
    const next = await client.get(nameOf(prefix, stored, piece))
    if (next === null) return undefined
    if (next.length !== Math.min(size - piece * PIECE, PIECE)) throw new RangeError(`a piece of ${next.length} bytes`)
    next.copy(body, piece * PIECE)
  }
  return body
}
