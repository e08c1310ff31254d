/** The program, run inside the test: no process to start, and what it tells as text. */
import { Arguments } from '../../src/cli/arguments.ts'
import { run } from '../../src/cli/run.ts'
import { serveSettings } from '../../src/cli/serve/settings.ts'
import { verb as serve } from '../../src/cli/verbs/serve.ts'

/** Runs it to its end; a service is stopped at once. @param stop aborted to stop it, as a signal does */
export async function ran(
  args: readonly string[],
  env: Record<string, string> = {},
  stop: AbortSignal = new AbortController().signal,
) {
  let [out, err] = ['', '']
  const terminal = {
    env,
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
  }
  const code = await run(args, terminal, stop)
  if (typeof code !== 'number') await code.stop('the test is over')
  return { code, out, err }
}

/** What `millpond serve` makes of its arguments. */
export const settingsOf = (args: readonly string[], env: Record<string, string>) =>
  serveSettings(new Arguments(args, serve, env))
