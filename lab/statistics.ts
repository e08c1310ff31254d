export interface Summary {
  median: number
  min: number
  max: number
}

/** Of what was not measured. */
export const MISSING: Summary = { median: Number.NaN, min: Number.NaN, max: Number.NaN }

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** By linear interpolation between the two nearest; NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

export function summary(values: readonly number[]): Summary {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** Latencies or waits by their share, from the least to the greatest. */
export function curveOf(values: readonly number[]): [share: number, value: number][] {
  if (values.length === 0) return []
  return [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.999]
    .filter((share) => share <= 1 - 1 / values.length)
    .map((share) => [share, quantile(values, share)])
}

/** For an axis of the unit `percentile`, whose tail is drawn as wide as its body. */
export function percentiles(curve: readonly (readonly [share: number, value: number])[]): [x: number, value: number][] {
  return curve.flatMap(([share, value]): [number, number][] => (share < 1 ? [[1 / (1 - share), value]] : []))
}
