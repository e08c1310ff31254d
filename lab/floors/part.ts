/** A part of the run that can be asked for by name: it measures some of the floors and yields each as it comes. */
import type { Bar, Row } from '../bench/row.ts'
import type { StoreName } from '../limits/stores.ts'
import type { Place } from '../rivals/place.ts'

export interface Floor {
  /** What is measured. */
  figure: string
  bar: Bar
}

export interface Stage {
  /** Of every measurement; a median counts. */
  runs: number
  /** To see that it works. */
  quick: boolean
  /** Jobs of a round on a server, in parts of what the full measurements take. */
  scale: number
  /** Of load, where a service is measured, and before it. */
  seconds: number
  warming: number
  /** Started when it is first asked for, and the same for all parts. */
  place(store: StoreName): Promise<Place>
  tell(what: string): void
  fail(what: string): void
}

export type Part = (stage: Stage) => AsyncGenerator<Floor, void>

/** @param about the queue or the experiment */
export function* floorsOf(about: string, rows: readonly Row[]): Generator<Floor> {
  for (const { name, bar } of rows) if (bar !== undefined) yield { figure: `${about}: ${name}`, bar }
}

/** Of an experiment's row: bars that nothing may fail or be lost are worth a line only when they are missed. */
export function* barsOf(figure: string, bars: readonly Bar[]): Generator<Floor> {
  for (const bar of bars) if (!bar.cleared || !bar.text.startsWith('≤ 0 ')) yield { figure, bar }
}
