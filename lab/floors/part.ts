/** A part of a run of floors has a name in `--only`, and yields each floor once it is measured. */
import { type Bar, isWorthAWord } from '../bars.ts'
import type { Row } from '../bench/row.ts'
import type { Stage, Table } from '../experiment.ts'

export interface Floor {
  /** What is measured. */
  figure: string
  bar: Bar
}

export interface Size {
  /** Runs of every measurement; their median counts. */
  runs: number
  /** Small, to see that it works. */
  quick: boolean
}

export type Part = (size: Size, stage: Stage) => AsyncGenerator<Floor, void>

/** @param about the queue */
export function* floorsOf(about: string, rows: readonly Row[]): Generator<Floor> {
  for (const { name, bar } of rows) if (bar !== undefined) yield { figure: `${about}: ${name}`, bar }
}

/** @param about the experiment */
export async function* barsOf(about: string, tables: AsyncIterable<Table>): AsyncGenerator<Floor> {
  for await (const { rows } of tables) {
    for (const { cells, bars } of rows) {
      for (const bar of bars) if (isWorthAWord(bar)) yield { figure: `${about}: ${cells[0]}`, bar }
    }
  }
}
