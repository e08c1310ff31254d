/** Variants in turn, A B C, C B A, A B C …, so that a slow spell of the machine falls on all of them. */

/** @returns what came out of each variant's runs, round by round */
export async function inTurn<Name extends string, Outcome>(
  names: readonly Name[],
  runs: number,
  perform: (name: Name) => Promise<Outcome>,
  about = '',
): Promise<Map<Name, Outcome[]>> {
  const outcomes = new Map(names.map((name) => [name, [] as Outcome[]]))
  for (let round = 0; round < runs; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${name}${about}, run ${round + 1}\r`)
      outcomes.get(name)?.push(await perform(name))
    }
  }
  return outcomes
}
