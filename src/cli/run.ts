/** The commands. */

import { version } from '../serve/version.ts'
import { shown } from '../values/duration.ts'
import { isMillpondError } from '../values/errors.ts'
import { safeText } from '../values/safe-error.ts'
import { type Running, startServing } from './serve.ts'
import { SERVE_HELP, serveSettings, UsageError } from './settings.ts'

const HELP = `millpond: a work queue over the store you already have

  millpond serve      the queue for every language, over HTTP
  millpond --help     this text; millpond serve --help: its options
  millpond --version  the version
`

export interface Terminal {
  env: Readonly<Record<string, string | undefined>>
  out(text: string): void
  err(text: string): void
}

/**
 * @param stop aborted when the program is to stop; a service that runs by then is for the caller to stop
 * @returns the exit code, or the running service
 */
export async function run(args: readonly string[], terminal: Terminal, stop: AbortSignal): Promise<number | Running> {
  const [command, ...rest] = args
  const show = (text: string) => {
    terminal.out(text)
    return 0
  }
  try {
    if (command === '--help' || command === '-h' || command === 'help') return show(HELP)
    if (command === '--version' || command === '-v') return show(`${version()}\n`)
    if (command === undefined) throw new UsageError('a command is missing')
    if (command !== 'serve') throw new UsageError(`there is no command ${shown(command)}`)
    const settings = await serveSettings(rest, terminal.env)
    if (settings === undefined) return show(SERVE_HELP)
    return (await startServing(settings, (line) => terminal.err(line), stop)) ?? 0
  } catch (error) {
    terminal.err(`millpond: ${messageOf(error, command)}\n`)
    const isUsage = isMillpondError(error, 'UnknownScheme') || isMillpondError(error, 'InvalidOption')
    return isUsage || error instanceof UsageError ? 2 : 1
  }
}

function messageOf(error: unknown, command: string | undefined): string {
  if (error instanceof UsageError) {
    return `${error.message}\nSee millpond ${command === 'serve' ? 'serve ' : ''}--help`
  }
  // Of other errors, such as an address in use, the system's text says enough.
  return isMillpondError(error) ? `${error.code}: ${error.message}` : safeText(error)
}
