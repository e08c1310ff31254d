/**
 * The tools: verbs of the command line, called with `--json`. So an agent gets the same checks, answers and messages as
 * a person, and each tool is described by what its verb declares.
 */
import type { Environment, Option } from '../arguments.ts'
import { EXIT, type Program, type Verb } from '../verb.ts'
import { type Tool, type ToolAnswer, ToolUnknown } from './protocol.ts'

/** Verbs that read alone. */
const READING = ['stats', 'explain', 'jobs', 'job', 'workers', 'plan', 'doctor'] as const
/** Verbs that change something, and what a repeated call does. `isFinal`: what is gone does not come back. */
const CHANGING: Readonly<Record<string, { isFinal: boolean; isIdempotent: boolean }>> = {
  limits: { isFinal: false, isIdempotent: true },
  pause: { isFinal: false, isIdempotent: true },
  resume: { isFinal: false, isIdempotent: true },
  requeue: { isFinal: false, isIdempotent: false },
  promote: { isFinal: false, isIdempotent: true },
  update: { isFinal: true, isIdempotent: true },
  push: { isFinal: false, isIdempotent: false },
  cancel: { isFinal: true, isIdempotent: true },
  remove: { isFinal: true, isIdempotent: true },
}
/** How the tool `settings` shows what the verb `limits` would change. */
const SETTINGS = { name: 'settings', verb: 'limits', options: ['group'] }

/** Never given by an agent: the store is chosen by who starts the server, and there is no standard input. */
const HIDDEN = new Set(['store', 'json', 'lines'])
/** What shows data of jobs, or tells whether a text is in them. */
const OF_PAYLOADS = new Set(['payloads', 'text'])
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
    const isShown = (name: string) => !HIDDEN.has(name) && (payloads || !OF_PAYLOADS.has(name))
    for (const name of READING) tools.#add(name, verbOf(name), isShown, true)
    tools.#add(SETTINGS.name, verbOf(SETTINGS.verb), (name) => SETTINGS.options.includes(name), true)
    if (allowChanges) for (const name of Object.keys(CHANGING)) tools.#add(name, verbOf(name), isShown, false)
    return tools
  }

  private constructor(env: Environment, program: Program) {
    this.#env = env
    this.#program = program
  }

  #add(name: string, verb: Verb, isShown: (option: string) => boolean, isReading: boolean): void {
    const takes = takenBy(verb, isShown)
    this.#known.set(name, { tool: toolOf(name, verb, takes, isReading), verb, takes })
  }

  get list(): Tool[] {
    return [...this.#known.values()].map(({ tool }) => tool)
  }

  async call(name: string, given: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolAnswer> {
    const known = this.#known.get(name)
    if (known === undefined) throw new ToolUnknown(`there is no tool ${JSON.stringify(name.slice(0, 60))}`)
    const args = argumentsOf(known, given)
    if (typeof args === 'string') return { text: args, isError: true }
    let [out, err] = ['', '']
    const terminal = {
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

function takenBy(verb: Verb, isShown: (option: string) => boolean): Record<string, object> {
  const text = { type: 'string' }
  const operands = (verb.operands ?? []).map((operand): [string, object] => [
    operandName(operand),
    operand.includes('…') ? { type: 'array', items: text } : text,
  ])
  const options = Object.entries(verb.options).filter(([option]) => isShown(option))
  return Object.fromEntries([
    ...operands,
    ...options.map(([option, declared]) => [option, schemaOf(declared)] as const),
  ])
}

function toolOf(name: string, verb: Verb, properties: Record<string, object>, isReading: boolean): Tool {
  const operands = verb.operands ?? []
  const change = isReading ? undefined : CHANGING[name]
  return {
    name,
    title: name === verb.name ? verb.summary : 'every setting, limit and rate of a queue, and who has set it',
    description: name === verb.name ? describedAs(verb) : 'Every setting of a queue, and the limits of its groups.',
    inputSchema: {
      type: 'object',
      properties,
      required: operands.filter((operand) => !operand.startsWith('[')).map(operandName),
      additionalProperties: false,
    },
    annotations: {
      readOnlyHint: isReading,
      destructiveHint: change?.isFinal ?? false,
      idempotentHint: isReading || (change?.isIdempotent ?? false),
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
      return `there is no argument ${JSON.stringify(name.slice(0, 60))}; known are ${Object.keys(takes).join(', ')}`
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
