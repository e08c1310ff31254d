/** Data of jobs on the command line: JSON as an argument, or `-` for the standard input, which other users cannot see. */
import type { Terminal } from './terminal.ts'
import { UsageError } from './usage-error.ts'

/** @returns undefined: none was given @throws UsageError, without any of the data */
export async function jsonData(terminal: Terminal, given: string | undefined): Promise<unknown> {
  if (given === undefined) return undefined
  return parsed(given === '-' ? await inputText(terminal) : given, 'the data')
}

/** One JSON a line. Empty lines are passed over. @throws UsageError */
export async function* jsonLines(terminal: Terminal): AsyncGenerator<unknown> {
  let number = 0
  let rest = ''
  for await (const chunk of terminal.input?.() ?? []) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      number++
      if (line.trim() !== '') yield parsed(line, `line ${number}`)
    }
  }
  if (rest.trim() !== '') yield parsed(rest, `line ${number + 1}`)
}

async function inputText(terminal: Terminal): Promise<string> {
  let text = ''
  for await (const chunk of terminal.input?.() ?? []) text += chunk
  return text
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`${what} is not JSON`)
  }
}
