import { inTurn } from '../../turns.ts'
import { JUDGED, row } from '../../users/row.ts'
import { run } from '../../users/run.ts'
import { type VariantName, variant } from '../../users/variants.ts'
import { barsOf, type Part } from '../part.ts'

const PATIENCE = 10_000
const NAMES: VariantName[] = ['nothing', 'grouped', 'redis', 'postgres']

export const users: Part = async function* ({ runs, seconds, warming, place }) {
  const [redis, postgres] = [await place('redis'), await place('postgres')]
  const outcomes = await inTurn(
    NAMES,
    runs,
    async (name) =>
      run(name, JUDGED, seconds, PATIENCE, { redis: await redis.fresh(), postgres: await postgres.fresh() }, warming),
    ' (E1)',
  )
  const ceilings = (outcomes.get('nothing') ?? []).map(({ rate }) => rate)
  for (const name of NAMES) {
    const { bars } = row(name, JUDGED, outcomes.get(name) ?? [], ceilings)
    yield* barsOf(`E1 users, ${variant(name).title}`, bars)
  }
}
