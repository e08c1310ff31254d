import { MillpondError } from '../errors/errors.ts'
import { shown } from '../time/duration.ts'

/**
 * Bytes, or a text such as `'64mb'` or `'256MB'`. A kb has 1,024 bytes. Any string passes the types, so that it can come from an
 * environment variable; one of another form is refused with `InvalidOption`.
 */
export type Size = number | string

const UNITS: Readonly<Record<string, number>> = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }

/** Whole bytes, from `least` to `most`. @param name what the size is for, as the error names it @throws InvalidOption */
export function bytesOf(given: unknown, name: string, least: number, most: number): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(kb|mb|gb)$/i.exec(typeof given === 'string' ? given : '') ?? []
  const bytes = number === undefined ? given : Math.round(Number(number) * (UNITS[unit.toLowerCase()] ?? 1))
  if (typeof bytes === 'number' && Number.isInteger(bytes) && bytes >= least && bytes <= most) return bytes
  const wanted = `from ${text(least)} to ${text(most)}: a whole number of bytes, or a text such as '256MB'`
  throw new MillpondError('InvalidOption', `${name} must be ${wanted}; got ${shown(given)}`)
}

function text(bytes: number): string {
  const unit = Object.entries(UNITS).findLast(([, size]) => bytes >= size && bytes % size === 0)
  return unit === undefined ? `${bytes} bytes` : `${bytes / unit[1]}${unit[0].toUpperCase()}`
}
