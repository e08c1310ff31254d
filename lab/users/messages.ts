/** What the processes tell each other. */
import { isVariant, type VariantName } from './variants.ts'

/** From a server, when asked: how many it has answered with `202`, and when the last, in ms of the machine's clock. */
export interface Tally {
  accepted: number
  last: number
}

export function isTally(message: unknown): message is Tally {
  return typeof message === 'object' && message !== null && 'accepted' in message && 'last' in message
}

/** The arguments of a child. */
export function childArguments(argv: readonly string[]): { name: VariantName; postgres: string; redis: string } {
  const [name = '', postgres = '', redis = ''] = argv
  if (!isVariant(name)) throw new Error(`no variant is named ${name}`)
  return { name, postgres, redis }
}
