/** An experiment as a chapter of the report: what is asked, and the parts that it measures. Each is `NAME/chapter.ts`. */
import type { Stage } from './experiment.ts'
import type { Finding, Part, Published, SizeName } from './report/model.ts'

export interface Run {
  size: SizeName
  stage: Stage
  /** Measured in turn so many times; medians count. */
  runs: number
  /** @returns the value of the run's size */
  pick<Value>(sizes: Record<SizeName, Value>): Value
  /** Whether `--variants` asks for it. */
  wants(variant: string): boolean
  /** Shows what goes on, in a few words. */
  tell(what: string): void
  /** Notes what could not be measured, in the chapter. */
  fail(about: string, error: unknown): void
  /** Adds to the versions that the report lists. */
  uses(name: string, version: string): void
}

export interface ChapterPlan {
  id: string
  title: string
  /** A word for the page's navigation. */
  short: string
  question: string
  published: Published[]
  /** About how long it takes, in seconds. */
  takes: Record<SizeName, number>
  setUp(run: Run): string[]
  measure(run: Run): AsyncGenerator<Part, void>
  findings(parts: readonly Part[]): Finding[]
}

/** The outcome, or undefined and a note in the chapter: the other figures are still worth having. */
export async function attempt<Outcome>(
  run: Run,
  about: string,
  perform: () => Promise<Outcome>,
): Promise<Outcome | undefined> {
  run.tell(about)
  try {
    return await perform()
  } catch (error) {
    run.fail(about, error)
    return undefined
  }
}

/**
 * Each variant `runs` times, in turn (A B C, C B A), so that a slow spell falls on all. A variant that fails has fewer outcomes.
 * @param atOnce how many variants run at the same time; more than one only where none is limited by the machine
 */
export async function attempts<Name extends string, Outcome>(
  run: Run,
  names: readonly Name[],
  about: (name: Name) => string,
  perform: (name: Name) => Promise<Outcome>,
  atOnce = 1,
): Promise<Map<Name, Outcome[]>> {
  const wanted = names.filter((name) => run.wants(name))
  const outcomes = new Map<Name, Outcome[]>(wanted.map((name) => [name, []]))
  for (let round = 0; round < run.runs; round++) {
    const turn = round % 2 === 0 ? wanted : wanted.toReversed()
    for (let at = 0; at < turn.length; at += atOnce) {
      const some = turn.slice(at, at + atOnce)
      const others = some.length > 1 ? `, and ${some.length - 1} more at the same time` : ''
      await Promise.all(
        some.map(async (name) => {
          const outcome = await attempt(run, about(name) + others, () => perform(name))
          if (outcome !== undefined) outcomes.get(name)?.push(outcome)
        }),
      )
    }
  }
  return outcomes
}

/** How the figures of a part came about. */
export const mediansOf = ({ runs }: Run): string =>
  runs === 1
    ? 'One run of each variant, on fresh servers.'
    : `Medians of ${runs} runs of each variant, on fresh servers, variants in turn.`
