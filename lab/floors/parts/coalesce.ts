import { rows } from '../../coalesce/row.ts'
import { run } from '../../coalesce/run.ts'
import { NAMES, type VariantName, variant } from '../../coalesce/variants.ts'
import { inTurn } from '../../turns.ts'
import { barsOf, type Part } from '../part.ts'

const CONNECTIONS = 1000
/** With a constant answer, in seconds. */
const WARMING = 1

export const coalesce: Part = async function* ({ runs, seconds, place }) {
  const perform = async (name: VariantName) => {
    const { store } = variant(name)
    return run(name, CONNECTIONS, seconds, store === undefined ? '' : await (await place(store)).fresh(), WARMING)
  }
  for (const row of rows(CONNECTIONS, await inTurn(measured, runs, perform, ' (E4)'))) {
    yield* barsOf(`E4 coalesce, ${variant(row.variant).title}`, row.bars)
  }
}

/** A call for each request has no floor. */
const measured = NAMES.filter((name) => name !== 'plain')
