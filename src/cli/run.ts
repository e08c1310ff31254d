/** The commands. */

import { version } from '../serve/version.ts'
import { shown } from '../values/duration.ts'
import { isMillpondError } from '../values/errors.ts'
import { safeText } from '../values/safe-error.ts'
import { type Running, startServing } from './serve.ts'
import { serveSettings } from './settings.ts'
import { HELP, SERVE_HELP, UsageError } from './usage.ts'

export interface Terminal {
  env: Readonly<Record<string, string | undefined>>
  out(text: string): void
  err(text: string): void
}

/** @returns the exit code, or what runs now */
export async function run(args: readonly string[], terminal: Terminal): Promise<number | Running> {
  const [command, ...rest] = args
  try {
    switch (command) {
      case '--help':
      case '-h':
      case 'help':
        terminal.out(HELP)
        return 0
      case '--version':
      case '-v':
        terminal.out(`${version()}\n`)
        return 0
      case 'serve': {
        const settings = await serveSettings(rest, terminal.env)
        if (settings !== undefined) return await startServing(settings, (line) => terminal.err(line))
        terminal.out(SERVE_HELP)
        return 0
      }
      case undefined:
        throw new UsageError('a command is missing')
      default:
        throw new UsageError(`there is no command ${shown(command)}`)
    }
  } catch (error) {
    terminal.err(told(error, command))
    return error instanceof UsageError ||
      isMillpondError(error, 'UnknownScheme') ||
      isMillpondError(error, 'InvalidOption')
      ? 2
      : 1
  }
}

function told(error: unknown, command: string | undefined): string {
  if (error instanceof UsageError) {
    return `millpond: ${error.message}\nSee millpond ${command === 'serve' ? 'serve ' : ''}--help\n`
  }
  if (isMillpondError(error)) return `millpond: ${error.code}: ${error.message}\n`
  // Such as an address that is in use: what the system says is what helps.
  return `millpond: ${safeText(error)}\n`
}
