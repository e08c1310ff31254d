/** What the command lines of the experiments have in common. */

/** For `parseArgs`. */
export const COMMON = {
  only: { type: 'string' },
  runs: { type: 'string' },
  quick: { type: 'boolean', default: false },
  json: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** Some of the names, with commas between; all unless given. */
export function names<Name extends string>(
  option: string,
  text: string | undefined,
  all: readonly Name[],
): readonly Name[] {
  if (text === undefined) return all
  return text.split(',').map((each) => {
    const name = all.find((known) => known === each)
    if (name === undefined) throw new Error(`--${option} takes ${all.join(', ')}; got ${each}`)
    return name
  })
}

export function whole(option: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${option} takes whole numbers from 1; got ${text}`)
  return value
}
