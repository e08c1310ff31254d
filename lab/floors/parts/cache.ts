import { JUDGED, rows } from '../../cache/row.ts'
import { run } from '../../cache/run.ts'
import { type VariantName, variant } from '../../cache/variants.ts'
import { inTurn } from '../../turns.ts'
import { barsOf, type Part } from '../part.ts'

const CONNECTIONS = 10
/** Ours, MessagePack, and of the other plain ones the fastest. */
const NAMES: VariantName[] = ['string', 'msgpack', 'millpond']

export const cache: Part = async function* ({ runs, seconds, place }) {
  const redis = await place('redis')
  const perform = async (name: VariantName) => run(name, JUDGED, CONNECTIONS, seconds, await redis.fresh())
  for (const row of rows(JUDGED, await inTurn(NAMES, runs, perform, ' (E3)'))) {
    yield* barsOf(`E3 cache, ${variant(row.variant).title}`, row.bars)
  }
}
