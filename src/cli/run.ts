/** From the arguments of the program to its exit code. */

import { isMillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { version } from '../values/runtime/version.ts'
import { shown } from '../values/time/duration.ts'
import { Arguments } from './arguments.ts'
import { programHelp, verbHelp } from './help.ts'
import type { Terminal } from './terminal.ts'
import { UsageError } from './usage-error.ts'
import { EXIT, type Running, type Verb } from './verb.ts'
import { VERBS } from './verbs/index.ts'

/**
 * @param stop aborted when the program is to stop; a service that runs by then is for the caller to stop
 * @returns the exit code, or the running service
 */
export async function run(args: readonly string[], terminal: Terminal, stop: AbortSignal): Promise<number | Running> {
  const [name, ...rest] = args
  let verb: Verb | undefined
  const show = (text: string) => {
    terminal.out(text)
    return EXIT.done
  }
  try {
    const isHelp = name === '--help' || name === '-h' || name === 'help'
    if (isHelp && rest[0] === undefined) return show(programHelp(await allVerbs()))
    if (name === '--version' || name === '-v') return show(`${version()}\n`)
    verb = await verbOf(isHelp ? rest[0] : name)
    if (isHelp) return show(verbHelp(verb))
    const given = new Arguments(rest, verb, terminal.env)
    if (given.help) return show(verbHelp(verb))
    return await verb.run({ args: given, terminal, stop, program: { verbs: allVerbs, run } })
  } catch (error) {
    terminal.err(`millpond: ${messageOf(error, verb)}\n`)
    if (REFUSALS.some((code) => isMillpondError(error, code))) return EXIT.refused
    return isUsage(error) ? EXIT.usage : EXIT.failed
  }
}

/** Nothing was begun: what was named is not there, or the store cannot do it. */
const REFUSALS = ['QueueUnknown', 'JobUnknown', 'NotSupported'] as const

function isUsage(error: unknown): boolean {
  return (
    error instanceof UsageError || isMillpondError(error, 'UnknownScheme') || isMillpondError(error, 'InvalidOption')
  )
}

const allVerbs = () => Promise.all(Object.values(VERBS).map(async (load) => (await load()).verb))

/** @throws UsageError */
async function verbOf(name: string | undefined): Promise<Verb> {
  if (name === undefined) throw new UsageError('a command is missing')
  const load = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined
  if (load === undefined) throw new UsageError(`there is no command ${shown(name)}${meantVerb(name)}`)
  return (await load()).verb
}

/** What other tools call them. */
const SYNONYMS: Readonly<Record<string, string>> = {
  retry: 'requeue',
  rm: 'remove',
  delete: 'remove',
  kill: 'cancel',
}

function meantVerb(name: string): string {
  const verb = Object.hasOwn(SYNONYMS, name) ? SYNONYMS[name] : undefined
  return verb === undefined ? didYouMean(name, Object.keys(VERBS)) : `; did you mean ${verb}?`
}

function messageOf(error: unknown, verb: Verb | undefined): string {
  if (error instanceof UsageError) {
    return `${error.message}\nSee millpond ${verb === undefined ? '' : `${verb.name} `}--help`
  }
  // Of other errors, such as an address in use, the system's text says enough.
  return isMillpondError(error) ? `${error.code}: ${error.message}` : safeText(error)
}
