/**
 * Paths that are never shown, such as `data.card.number` or `*.password`. A name stands for a member, `*` for every one at this level,
 * `**` for any number of levels. Members of arrays have no name: a path goes through arrays.
 */
import { MillpondError } from '../values/errors/errors.ts'

type Path = readonly string[]

/** @throws InvalidOption */
export function redactedPaths(given: readonly string[]): Path[] {
  return given.map((path) => {
    const parts = path.split('.')
    if (path !== '' && parts.every((part) => part !== '')) return parts
    throw new MillpondError(
      'InvalidOption',
      `redact takes paths such as 'data.card.number'; got ${JSON.stringify(path)}`,
    )
  })
}

/** What is left of the paths below one member. */
export class Redaction {
  readonly #paths: readonly Path[]

  constructor(paths: readonly Path[]) {
    this.#paths = paths
  }

  /** Whether nothing below may be hidden. */
  get isEmpty(): boolean {
    return this.#paths.length === 0
  }

  /** Whether this value itself is hidden. */
  get hides(): boolean {
    return this.#paths.some((path) => path.length === 0 || path.every((part) => part === '**'))
  }

  at(name: string): Redaction {
    if (this.#paths.length === 0) return this
    return new Redaction(this.#paths.flatMap((path) => step(path, name)))
  }
}

function step(path: Path, name: string): Path[] {
  const [first, ...rest] = path
  if (first === undefined) return []
  if (first === '**') return [path, ...step(rest, name)]
  return first === '*' || first === name ? [rest] : []
}
