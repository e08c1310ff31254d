/** What experiment E2 fixes, and what follows from the length of a run. */
import { accessSync, constants } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'

/** Requests per second, sent whether or not earlier ones were answered. */
export const RATE = 100
/** How long the mail server takes over one mail, in ms. */
export const MAIL_TAKES = 5000
/** When a client gives up, in ms. */
export const CLIENT_TIMEOUT = 30_000
/** The published row that answers every request and sends every mail: queue size 3,000, 1,000 workers. */
export const QUEUE_SIZE = 3000
export const WORKERS = 1000
/** Short, in ms, so that what a killed worker held comes back while we watch; 30 s unless set. */
export const LEASE = 8000

export interface Plan {
  /** As published, or shortened to fit into a minute. */
  full: boolean
  /** Milliseconds of load for each variant. */
  duration: number
  requests: number
  /** Milliseconds from the first request to the SIGKILL: late enough that mails have gone out, and that hundreds are under way. */
  killAt: number
  /** Nothing here may take longer, in ms. */
  watchdog: number
  /** Where the figures go as JSON. */
  json: string | undefined
}

const HELP = `Experiment E2: a newsletter service whose mails take ${MAIL_TAKES / 1000} s each, under ${RATE} requests/s.

Usage: npm start -- [options]

  --full        the published load: 30 s and 3,000 requests for each variant (unless given: 10 s and 1,000)
  --json FILE   write the figures to FILE as well
  --help        show this

It works in a temporary folder and on free ports of the loopback interface, and leaves nothing behind.
Exit code: 0; 1 when a mail that was accepted is missing, or the experiment could not be played; 2 for wrong arguments.`

/** Ends the process for `--help` and for arguments that make no sense. */
export function planFrom(args: string[]): Plan {
  const wrong = (message: string): never => {
    console.error(`${message}\n\n${HELP}`)
    process.exit(2)
  }
  const options = {
    full: { type: 'boolean' },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  } as const
  let values: { full?: boolean; json?: string; help?: boolean }
  try {
    values = parseArgs({ args, options, strict: true }).values
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error))
  }
  if (values.help === true) {
    console.log(HELP)
    process.exit(0)
  }
  // Said now rather than after a minute.
  if (values.json !== undefined && !isWritable(dirname(resolve(values.json)))) {
    wrong(`--json ${values.json}: that folder does not exist or cannot be written to`)
  }
  const full = values.full === true
  const duration = full ? 30_000 : 10_000
  return {
    full,
    duration,
    requests: (duration / 1000) * RATE,
    killAt: duration * 0.6,
    watchdog: full ? 600_000 : 180_000,
    json: values.json,
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
