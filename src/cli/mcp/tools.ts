/**
 * The tools: verbs of the command line, called with `--json`. So an agent gets the same checks, answers and messages as
 * a person, and each tool is described by what its verb declares.
 */

import { ACTIONS_QUEUE } from '../../pond/actions.ts'
import type { Environment, Option } from '../arguments.ts'
import { FILTERS } from '../filters.ts'
import type { Terminal } from '../terminal.ts'
import { EXIT, type Program, type Verb } from '../verb.ts'
import { type Tool, type ToolAnswer, ToolUnknown } from './protocol.ts'

/** Verbs that read alone. */
const READING = ['stats', 'explain', 'jobs', 'job', 'workers', 'plan', 'doctor'] as const
/** Verbs that change something, and what a repeated call does. `isFinal`: what it did cannot be taken back. */
const CHANGING: Readonly<Record<string, { isFinal: boolean; isIdempotent: boolean }>> = {
  limits: { isFinal: true, isIdempotent: true },
  pause: { isFinal: false, isIdempotent: true },
  resume: { isFinal: false, isIdempotent: true },
  requeue: { isFinal: true, isIdempotent: false },
  promote: { isFinal: true, isIdempotent: true },
  update: { isFinal: true, isIdempotent: true },
  push: { isFinal: false, isIdempotent: false },
  cancel: { isFinal: true, isIdempotent: true },
  remove: { isFinal: true, isIdempotent: true },
  schedules: { isFinal: true, isIdempotent: false },
}

/** A tool that shows what its verb would change: it takes fewer arguments. */
interface View {
  name: string
  verb: string
  takes: readonly string[]
  title: string
  description: string
}

const VIEWS: readonly View[] = [
  {
    name: 'settings',
    verb: 'limits',
    takes: ['queue', 'group'],
    title: 'every setting, limit and rate of a queue, and who has set it',
    description: 'Every setting of a queue, and the limits of its groups.',
  },
  {
    name: 'schedules',
    verb: 'schedules',
    takes: [],
    title: 'lists schedules',
    description: 'Every schedule: when it fires, into which queue, its last and next time, whether it is paused.',
  },
]

/** Never given by an agent: the store is chosen by who starts the server, and there is no standard input. */
const HIDDEN = new Set(['store', 'json', 'lines'])
/** What shows data of jobs, or tells whether a text is in them. */
const OF_PAYLOADS = new Set(['payloads', 'text'])
/** An agent cannot take away the trace of what it did. */
const LOG_STAYS = `${ACTIONS_QUEUE} is the log of actions: no tool changes it`
/** An answer beyond this is cut: it fills the context of a model. */
const MOST = 100_000

export interface ToolOptions {
  allowChanges: boolean
  payloads: boolean
}

interface Known {
  tool: Tool
  verb: Verb
  /** What it takes, by name: the schema of each. */
  takes: Readonly<Record<string, object>>
}

export class Tools {
  readonly #known = new Map<string, Known>()
  readonly #env: Environment
  readonly #program: Program

  /** @param env with MILLPOND_STORE */
  static async make({ allowChanges, payloads }: ToolOptions, env: Environment, program: Program): Promise<Tools> {
    const tools = new Tools(env, program)
    const verbs = new Map((await program.verbs()).map((verb) => [verb.name, verb]))
    const verbOf = (name: string): Verb => {
      const verb = verbs.get(name)
      if (verb === undefined) throw new Error(`the tool ${name} has no verb`)
      return verb
    }
    const isShown = (name: string, { options }: Verb) =>
      !HIDDEN.has(name) && (payloads || !(OF_PAYLOADS.has(name) || options[name] === FILTERS.data))
    for (const name of READING) tools.#add(verbOf(name), isShown)
    for (const view of VIEWS) tools.#add(verbOf(view.verb), (name) => view.takes.includes(name), view)
    // The verb `schedules` takes the place of its view.
    if (allowChanges) for (const name of Object.keys(CHANGING)) tools.#add(verbOf(name), isShown)
    return tools
  }

  private constructor(env: Environment, program: Program) {
    this.#env = env
    this.#program = program
  }

  #add(verb: Verb, isShown: (argument: string, verb: Verb) => boolean, view?: View): void {
    const takes = takenBy(verb, isShown)
    this.#known.set(view?.name ?? verb.name, { tool: toolOf(verb, takes, view), verb, takes })
  }

  get list(): Tool[] {
    return [...this.#known.values()].map(({ tool }) => tool)
  }

  async call(name: string, given: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolAnswer> {
    const known = this.#known.get(name)
    if (known === undefined) throw new ToolUnknown(`there is no tool ${JSON.stringify(name.slice(0, 60))}`)
    const args = argumentsOf(known, given)
    if (typeof args === 'string') return { text: args, isError: true }
    const isOfLog = args.some((one) => one === ACTIONS_QUEUE || one === `--queue=${ACTIONS_QUEUE}`)
    if (isOfLog && !known.tool.annotations.readOnlyHint) {
      return { text: LOG_STAYS, isError: true }
    }
    let [out, err] = ['', '']
    const terminal: Terminal = {
      through: 'mcp',
      env: { ...this.#env, NO_COLOR: '1' },
      out: (text: string) => {
        if (out.length <= MOST) out += text
      },
      err: (text: string) => {
        err += text
      },
    }
    const code = await this.#program.run([known.verb.name, '--json', ...args], terminal, signal)
    const isFound = code === EXIT.done || (code === EXIT.refused && out !== '')
    if (!isFound) return { text: `${out}${err}`.trim(), isError: true }
    const text = out.length > MOST ? `${out.slice(0, MOST).toWellFormed()}\n… cut: ask for less` : out
    return { text: `${text}${err}`.trim() || 'Nothing was found.', isError: false }
  }
}

/** `[ID…]` as `id`. */
const operandName = (operand: string): string =>
  operand
    .replaceAll(/[[\]…]/g, '')
    .toLowerCase()
    .replace('|', '_or_')

function takenBy(verb: Verb, isShown: (argument: string, verb: Verb) => boolean): Record<string, object> {
  const text = { type: 'string' }
  const operands = (verb.operands ?? []).map((operand): [string, object] => [
    operandName(operand),
    operand.includes('…') ? { type: 'array', items: text } : text,
  ])
  const options = Object.entries(verb.options).map(([option, declared]): [string, object] => [
    option,
    schemaOf(declared),
  ])
  return Object.fromEntries([...operands, ...options].filter(([name]) => isShown(name, verb)))
}

function toolOf(verb: Verb, properties: Record<string, object>, view: View | undefined): Tool {
  const needed = (verb.operands ?? []).filter((operand) => !operand.startsWith('['))
  const change = view === undefined ? CHANGING[verb.name] : undefined
  return {
    name: view?.name ?? verb.name,
    title: view?.title ?? verb.summary,
    description: view?.description ?? describedAs(verb),
    inputSchema: {
      type: 'object',
      properties,
      required: needed.map(operandName),
      additionalProperties: false,
    },
    annotations: {
      readOnlyHint: change === undefined,
      destructiveHint: change?.isFinal ?? false,
      idempotentHint: change?.isIdempotent ?? true,
      openWorldHint: false,
    },
  }
}

const describedAs = ({ summary, notes }: Verb): string =>
  `${summary[0]?.toUpperCase()}${summary.slice(1)}.${notes === undefined ? '' : `\n${notes}`}`

function schemaOf({ value, multiple, help }: Option): object {
  const description = help.replaceAll('\n', ' ')
  if (value === undefined) return { type: 'boolean', description }
  const one = { type: 'string' }
  return multiple ? { type: 'array', items: one, description } : { ...one, description: `${value}: ${description}` }
}

/** @returns the arguments of the verb, or what is wrong */
function argumentsOf({ verb, takes }: Known, given: Readonly<Record<string, unknown>>): string[] | string {
  const options: string[] = []
  const operands = (verb.operands ?? []).map(operandName)
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(takes, name))
      return `there is no argument ${JSON.stringify(name.slice(0, 60))}; known are ${Object.keys(takes).join(', ') || 'none'}`
    if (operands.includes(name) || value === null || value === undefined || value === false) continue
    // A model may send a number where a text is meant.
    for (const one of Array.isArray(value) ? value : [value]) {
      if (typeof one !== 'string' && typeof one !== 'number' && typeof one !== 'boolean') return `${name} is a text`
      options.push(one === true ? `--${name}` : `--${name}=${one}`)
    }
  }
  const values = operands.flatMap((name) => given[name] ?? []).map(String)
  return [...options, '--', ...values]
}
