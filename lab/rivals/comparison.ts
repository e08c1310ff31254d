/** Rows from a task of ours and those of the rivals, measured in turn. */
import { atLeast, atMost, type Bar, type Figure, type Row, ratio, type Unit } from '../bench/row.ts'
import { MISSING, type Summary } from '../bench/statistics.ts'
import type { Place } from './place.ts'
import { inTurn } from './runner.ts'
import type { Stage } from './section.ts'
import type { Task } from './task.ts'

export interface Want {
  row: string
  /** Of the outcome. */
  figure: string
  unit: Unit
  bar?: (ours: Summary, rivals: readonly Figure[]) => Bar
}

/** @param tasks ours comes first @param wants rows, all from the same tasks */
export async function compare(
  tasks: readonly Task[],
  wants: readonly Want[],
  runs: number,
  place: Place,
  stage: Stage,
): Promise<Row[]> {
  const all = await inTurn(tasks, runs, place, stage.tell, stage.fail)
  return wants.map(({ row, figure, unit, bar }) => {
    const [ours = MISSING, ...theirs] = all.map((figures) => figures(figure))
    const rivals = tasks.slice(1).map(({ contender }, at) => ({ name: contender, figure: theirs[at] ?? MISSING }))
    return { name: row, unit, ours, rivals, bar: bar?.(ours, rivals) }
  })
}

/** At least so many times the best of the rivals named, or of all. */
export function timesBest(least: number, ...names: string[]): NonNullable<Want['bar']> {
  return (ours, rivals) => {
    const among = rivals.filter(({ name }) => names.length === 0 || names.includes(name))
    return atLeast(Math.min(...among.map(({ figure }) => ratio('jobs/s', ours, figure))), least, ' ×')
  }
}

/** Ours is at most this share of the least of theirs. */
export function shareOfLeast(most: number): NonNullable<Want['bar']> {
  return (ours, rivals) => atMost(ours.median / Math.min(...rivals.map(({ figure }) => figure.median)), most, ' ×')
}
