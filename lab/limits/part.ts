/** A part of the experiment: a table with a line per store and case. */
import type { Bar } from '../bars.ts'

export const STORES = ['memory', 'sqlite', 'postgres', 'redis'] as const
export type StoreName = (typeof STORES)[number]

export interface Scale {
  /** A small part of the size and of the time. */
  quick: boolean
}

export interface Part {
  title: string
  /** Of the columns between the store and the bars. */
  head: readonly string[]
  stores: readonly StoreName[]
  /** @param fresh gives the URL of a store with nothing in it */
  measure(store: StoreName, fresh: () => Promise<string>, scale: Scale): Promise<{ cells: string[]; bars: Bar[] }[]>
}

export const ms = (value: number): string => `${value.toFixed(value < 0.1 && value > 0 ? 4 : value < 10 ? 2 : 0)} ms`
