/**
 * The ground of the command line. A verb is a file in `verbs/` that exports `verb`; `verbs/index.ts` lists them. The
 * rest comes from what it declares: parsing, help, "did you mean", messages and exit codes.
 */
import type { Arguments, Option } from './arguments.ts'
import type { Terminal } from './terminal.ts'

/** What a run of the program ends with. docs/cli.md has them for users. */
export const EXIT = {
  /** It did what it was asked for. A service ends with it after SIGTERM, too. */
  done: 0,
  /** It failed, or only a part was done; the message says what. */
  failed: 1,
  /** The call was wrong: nothing was begun. */
  usage: 2,
  /** The check that was asked for found something, such as a store that cannot take all. Nothing was changed. */
  refused: 3,
  /** Stopped by SIGINT before the end; what was done is whole. */
  SIGINT: 130,
  /** Stopped by SIGTERM before the end; what was done is whole. */
  SIGTERM: 143,
} as const

export interface Verb<Name extends string = string> {
  name: string
  /** One line, for `millpond --help`. */
  summary: string
  /**
   * What stands behind the name without an option, such as `SOURCE`; in brackets what may be left out. The last one with … may be given
   * several times.
   */
  operands?: readonly string[]
  /** By name, as in `--store`. `--help` is always there. */
  options: Readonly<Record<Name, Option>>
  /** Further paragraphs of the help. */
  notes?: string
  /** @returns the exit code, or a service that runs until it is stopped @throws UsageError, MillpondError */
  run(call: Call<Name>): Promise<number | Running>
}

export interface Call<Name extends string = string> {
  args: Arguments<Name>
  terminal: Terminal
  /** Aborted when the program is to stop, with `SIGINT`, `SIGTERM` or another reason. */
  stop: AbortSignal
  program: Program
}

/** What a verb can know of the program that it is part of. */
export interface Program {
  /** All verbs, in the order of the help. */
  verbs(): Promise<Verb[]>
  /** Runs another verb, as if it were called in a shell. */
  run(args: readonly string[], terminal: Terminal, stop: AbortSignal): Promise<number | Running>
}

/** A service. */
export interface Running {
  /** Stops it, once. Resolves when all is answered and closed. @param reason for the log */
  stop(reason: string): Promise<void>
}

/** Checks the types of a verb against the names of its own options. */
export function defineVerb<Name extends string>(verb: Verb<Name>): Verb<Name> {
  return verb
}

/** The exit code after a stop before the end. */
export function stoppedCode(stop: AbortSignal): number {
  return stop.reason === 'SIGTERM' ? EXIT.SIGTERM : EXIT.SIGINT
}
