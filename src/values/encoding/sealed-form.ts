/** How a sealed payload is told from others: `contract/seal.md`. */

/** The first byte stands at the beginning of no UTF-8 and of no MessagePack. */
export const SEAL_MAGIC: Uint8Array = Uint8Array.from([0xc1, 0x4d, 0x50, 0x53, 0x65, 0x61, 0x6c, 0x01])

/** Most bytes that sealing adds. */
export const MAX_SEAL = 128

export function isSealed(body: string | Uint8Array): body is Uint8Array {
  return typeof body !== 'string' && SEAL_MAGIC.every((byte, index) => body[index] === byte)
}

/** The id of the key that a sealed payload names; undefined: it is cut off. */
export function sealKeyId(body: Uint8Array): string | undefined {
  const length = body[SEAL_MAGIC.length] ?? 0
  const from = SEAL_MAGIC.length + 1
  if (length === 0 || body.length < from + length) return undefined
  return Buffer.from(body.subarray(from, from + length)).toString('latin1')
}
