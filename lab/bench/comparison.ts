/** Rows from a task of ours and those of the rivals, measured in turn. */
import { atLeast, atMost, type Bar } from '../bars.ts'
import type { Place } from '../places.ts'
import { MISSING, type Summary } from '../statistics.ts'
import type { ContenderName } from './contender.ts'
import { type Figure, type Row, ratio, type Unit } from './row.ts'
import { measured } from './runner.ts'
import type { Task } from './task.ts'

export interface Want {
  row: string
  /** Of the outcome. */
  figure: string
  unit: Unit
  bar?: (ours: Summary, rivals: readonly Figure[]) => Bar
}

/** Rows that are measured together. */
export interface Measured {
  /** Ours comes first. */
  tasks: readonly Task[]
  /** All from the same tasks. */
  wants: readonly Want[]
  /** `npm run floors` measures these rows too, beside these rivals alone. */
  floor?: readonly ContenderName[]
}

export async function compare({ tasks, wants }: Measured, runs: number, place: Place): Promise<Row[]> {
  const all = await measured(tasks, runs, place)
  return wants.map(({ row, figure, unit, bar }) => {
    const [ours = MISSING, ...theirs] = all.map((figures) => figures(figure))
    const [cpu = MISSING, ...theirCpu] = all.map((figures) => figures(`${figure} cpu`))
    const rivals = tasks.slice(1).map(({ contender }, at) => {
      return { name: contender, figure: theirs[at] ?? MISSING, cpu: known(theirCpu[at]) }
    })
    return { name: row, unit, ours, cpu: known(cpu), rivals, bar: bar?.(ours, rivals) }
  })
}

const known = (cpu = MISSING) => (cpu === MISSING ? undefined : cpu)

/** A bar on ours alone. */
export const reaches =
  (least: number): NonNullable<Want['bar']> =>
  (ours) =>
    atLeast(ours.median, least)

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
