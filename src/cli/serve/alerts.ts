/** The alerts of `millpond serve`, from a file: rules, and a webhook or a command that is told. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AlertOptions } from '../../alerts/index.ts'
import { checkRules } from '../../alerts/rules.ts'
import type { Alert } from '../../alerts/watch.ts'
import { orUsageError } from '../arguments.ts'
import { UsageError } from '../usage-error.ts'

/** Milliseconds that a command may run. */
const COMMAND_TIMEOUT = 30_000
const FORM = '{ "rules": […], "notify": { "url": "https://…" } } or { "rules": […], "notify": { "command": ["…"] } }'

/**
 * @param file its name, for messages
 * @param webhook checks the URL of a webhook, and adds its secrets
 * @throws UsageError
 */
export function alertOptions(
  file: string,
  text: string,
  webhook: (url: unknown) => Exclude<AlertOptions['notify'], (...given: never[]) => unknown>,
): Omit<AlertOptions, 'onError'> {
  const wrong = () => new UsageError(`--alerts: ${file} is not JSON such as ${FORM}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong()
  }
  if (typeof value !== 'object' || value === null || !('rules' in value && 'notify' in value)) throw wrong()
  const { rules, notify, ...others } = value
  if (typeof notify !== 'object' || notify === null || Object.keys(notify).length !== 1) throw wrong()
  if (Object.keys(others).some((name) => name !== 'every')) throw wrong()
  orUsageError('--alerts: ', () => checkRules(rules))
  // The library checks their form.
  const given = { ...others, rules: rules as AlertOptions['rules'] }
  if ('url' in notify) return { ...given, notify: webhook(notify.url) }
  if (!('command' in notify) || !isCommand(notify.command)) throw wrong()
  const { command } = notify
  return { ...given, notify: (alert, signal) => run(command, alert, signal) }
}

const isCommand = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string' && word !== '')

/** Without a shell, so that no name is read as a command. The alert is JSON at the standard input. @throws if it fails */
export async function run(
  [program = '', ...args]: readonly string[],
  alert: Alert,
  signal: AbortSignal,
): Promise<void> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(COMMAND_TIMEOUT)])
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'], signal: ending })
  // A command need not read it.
  child.stdin.on('error', () => {})
  child.stdin.end(`${JSON.stringify(alert)}\n`)
  const [code, killedBy] = await once(child, 'close')
  if (code !== 0) throw new Error(`the command of the alerts ended with ${code ?? killedBy}`)
}
