/** How a handler's process is started: like this one, with its flags, loaders and preloaded modules, but with a main program of ours. */
import { MillpondError } from '../../values/errors/errors.ts'
import type { Limits } from './messages.ts'

const MIB = 1024 ** 2
const isDeno = process.versions.deno !== undefined
const isBun = process.versions.bun !== undefined

/** Loads the code that comes over the channel. It does not stand on the command line, which may be too short for it. */
const BOOT = `process.once('message', async ({ code, load }) => (await import(code)).start(load))`

/** Flags of the main program, or that would be in the way in a second process. An inspector's port is taken. */
const OWN =
  /^(?:-[epci]{1,2}|--(?:eval|print|check|interactive|input-type|inspect|watch|test|run|build|max[-_]old[-_]space)\b.*)$/

/** What V8 may take of a process's memory: the rest is for code, new objects, Buffers, and the process itself. */
const HEAP_SHARE = 0.75

/** The arguments of the runtime, for a process with these limits. */
export function argumentsFor({ memory }: Limits): string[] {
  const flags = carriedOver(process.execArgv)
  if (isDeno) return [...flags, `data:text/javascript;base64,${Buffer.from(BOOT).toString('base64')}`]
  // V8 gives up before the watchdog sees it where one step asks for more than there is.
  const heap = memory === null || isBun ? [] : [`--max-old-space-size=${Math.ceil((memory * HEAP_SHARE) / MIB)}`]
  return [...flags, ...heap, '-e', BOOT]
}

/** What follows a flag and is none is its value. */
export function carriedOver(flags: readonly string[]): string[] {
  let isOwn = false
  return flags.filter((flag) => {
    if (flag.startsWith('-')) isOwn = OWN.test(flag)
    return !isOwn
  })
}

/** @throws NotSupported: no process can be started here, or none that can be watched */
export function assertCanIsolate(what: string): void {
  for (const [scope, flag] of [
    ['child', '--allow-child-process'],
    ['worker', '--allow-worker'],
  ] as const) {
    // Missing unless Node runs with --permission.
    if (process.permission === undefined || process.permission.has(scope)) continue
    throw new MillpondError('NotSupported', `${what} needs ${flag}, as this process runs with --permission`)
  }
  if (isOneFile()) {
    const message = `${what} needs the runtime itself as a program; this one is built into a single executable file`
    throw new MillpondError('NotSupported', message)
  }
}

/** Started again, such a file would be the application once more. */
function isOneFile(): boolean {
  if (isDeno) return Reflect.get(Object(Reflect.get(globalThis, 'Deno')).build, 'standalone') === true
  if (isBun)
    return /[/\\][$~]bunfs|B:[/\\]~BUN/.test(String(Reflect.get(Object(Reflect.get(globalThis, 'Bun')), 'main')))
  return process.getBuiltinModule('node:sea').isSea()
}
