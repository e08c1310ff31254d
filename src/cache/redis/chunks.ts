/** Bodies that are too large for one string: Redis' end at 512 MB, and long before that one command holds up all others. */
import type { Client } from '../../stores/redis-client/settings.ts'
import type { StoredValue } from './stored-value.ts'

/** What goes into one command. Redis copies it twice within a script, and does nothing else meanwhile. */
export const CHUNK_BYTES = 16 * 1024 * 1024
/** How many ms the chunks outlive their value, so that a reader that has begun can end. */
const EXTRA_LIFE = 60_000

/** A `RedisLayer`. */
interface Caller {
  call<T>(send: (client: Client) => Promise<T>, bytes?: number): Promise<T>
}

/** @param prefix as `CacheKeys.chunks` gives it */
const nameOf = (prefix: string, { version }: StoredValue, chunk: number): string =>
  `${prefix}${Buffer.from(version, 'latin1').toString('hex')}:${chunk}`

/** One after the other, so that no more than one is in the client's buffers. @returns how many there are */
export async function storeChunks(redis: Caller, prefix: string, stored: StoredValue, life: number) {
  const { body } = stored
  let chunk = 0
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    const name = nameOf(prefix, stored, chunk++)
    const part = body.subarray(at, at + CHUNK_BYTES)
    await redis.call((client) => client.set(name, part, 'PX', life + EXTRA_LIFE), part.length)
  }
  return chunk
}

/** Of a value that was not stored after all. */
export async function removeChunks(redis: Caller, prefix: string, stored: StoredValue, chunks: number) {
  const names = Array.from({ length: chunks }, (_, chunk) => nameOf(prefix, stored, chunk))
  await Promise.all(names.map((name) => redis.call((client) => client.unlink(name))))
}

/**
 * @returns undefined where a chunk is missing
 * @throws RangeError where the head does not fit the chunks
 */
export async function fetchChunks(redis: Caller, prefix: string, stored: StoredValue): Promise<Buffer | undefined> {
  const { chunks, size } = stored
  if (chunks !== Math.ceil(size / CHUNK_BYTES)) throw new RangeError(`${size} bytes in ${chunks} chunks`)
  let body: Buffer | undefined
  for (let chunk = 0; chunk < chunks; chunk++) {
    const at = chunk * CHUNK_BYTES
    const next = await redis.call((client) => client.getBuffer(nameOf(prefix, stored, chunk)), CHUNK_BYTES)
    if (next === null) return undefined
    if (next.length !== Math.min(size - at, CHUNK_BYTES)) throw new RangeError(`a chunk of ${next.length} bytes`)
    // Not before the first is there: the head is believed for no more than what it has shown.
    body ??= Buffer.allocUnsafe(size)
    next.copy(body, at)
  }
  return body
}
