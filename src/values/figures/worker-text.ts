/** What is told of workers, as people read it. */
import type { Lane } from '../operations/requests.ts'

/** Such as `2 of 10 for priority >= 8`. @param slots all of them */
export const lanesText = (lanes: readonly Lane[], slots: number): string =>
  lanes.map(({ minPriority, reserve }) => `${reserve} of ${slots} for priority >= ${minPriority}`).join(', ')

/** What several workers keep together, the highest priority first; null: nothing. */
export function lanesOf(workers: readonly { lanes: readonly Lane[] | null }[]): Lane[] | null {
  const reserves = new Map<number, number>()
  for (const { lanes } of workers) {
    for (const { minPriority, reserve } of lanes ?? []) {
      reserves.set(minPriority, (reserves.get(minPriority) ?? 0) + reserve)
    }
  }
  const all = [...reserves].map(([minPriority, reserve]) => ({ minPriority, reserve }))
  return all.length === 0 ? null : all.sort((a, b) => b.minPriority - a.minPriority)
}

/** Seconds, as no store tells of workers that were silent for more than a minute. */
export const silentFor = (silence: number): string => `silent since ${Math.floor(silence / 1000)} s`
