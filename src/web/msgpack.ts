/** MessagePack in bodies and answers. */
import { Packr } from 'msgpackr'
import { checkMessagePack } from '../values/plain-msgpack.ts'
import { MAX_DEPTH, malformed } from './plain.ts'

const packr = Object.assign(new Packr({ useRecords: false, variableMapSize: true, mapsAsObjects: true }), {
  // Integers of 64 bits come as numbers where a number holds them: many encoders write every integer that wide.
  // The unpacker knows this setting, its types do not.
  int64AsType: 'auto',
})

export function pack(value: unknown): Uint8Array {
  return packr.pack(value)
}

/** @throws Refusal */
export function unpack(bytes: Uint8Array): unknown {
  checkMessagePack(bytes, MAX_DEPTH, malformed)
  return packr.unpack(bytes)
}
