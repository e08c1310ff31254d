import { COMPARISONS, drains } from '../../bench/sections/memory.ts'
import { floorsOf, type Part } from '../part.ts'

const JOBS = 100_000

export const memory: Part = async function* ({ runs, quick, tell }) {
  tell('memory, drain')
  const comparisons = COMPARISONS.filter(({ from }) => from === 'backlog')
  const rows = await drains(comparisons, ['fastq'], 'nothing', quick ? JOBS / 10 : JOBS, runs)
  yield* floorsOf(
    'memory, beside fastq.promise',
    rows.filter(({ name }) => name.endsWith('warm')),
  )
}
