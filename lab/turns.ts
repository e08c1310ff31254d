/** Measures in turn, A B C, C B A, A B C …, so that a slow spell of the machine falls on all. */
import { tell } from './progress.ts'

/** @returns the outcomes of each, run by run */
export async function inTurn<Each, Outcome>(
  all: readonly Each[],
  runs: number,
  perform: (each: Each) => Promise<Outcome>,
  about: (each: Each) => string = String,
): Promise<Map<Each, Outcome[]>> {
  const outcomes = new Map(all.map((each) => [each, [] as Outcome[]]))
  for (let run = 0; run < runs; run++) {
    for (const each of run % 2 === 0 ? all : all.toReversed()) {
      tell(`${about(each)}, run ${run + 1} of ${runs}`)
      outcomes.get(each)?.push(await perform(each))
    }
  }
  return outcomes
}
