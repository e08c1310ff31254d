/** The help of the program and of its verbs, made of what the verbs declare. */
import type { Option } from './arguments.ts'
import type { Verb } from './verb.ts'

const WIDTH = 24

export function programHelp(verbs: readonly Verb[]): string {
  const width = Math.max(...verbs.map(({ name }) => name.length)) + 2
  const lines = verbs.map(({ name, summary }) => `  millpond ${name.padEnd(width)}${summary}`)
  return `millpond: a work queue over the store you already have

${lines.join('\n')}

  millpond VERB --help    its options
  millpond --version      the version

Jobs wait?      millpond explain says why, and which command helps, such as millpond limits QUEUE --running N
Jobs are dead?  millpond jobs QUEUE --state dead, then millpond requeue --queue QUEUE with filters, first with --dry-run

Results go to the standard output, all else to the standard error. Exit codes: 0 done, 1 failed, 2 a wrong call,
3 refused or found something, 130 and 143 stopped by SIGINT or SIGTERM before the end. More is in docs/cli.md.
`
}

export function verbHelp({ name, summary, operands = [], options, notes }: Verb): string {
  const entries = Object.entries(options)
  const usage = ['millpond', name, ...operands, ...(entries.length > 0 ? ['[options]'] : [])].join(' ')
  const lines = entries.map(([option, declared]) => optionHelp(option, declared))
  return [`${usage}: ${summary}\n`, lines.join('\n'), notes ?? '']
    .filter((part) => part !== '')
    .map((part) => (part.endsWith('\n') ? part : `${part}\n`))
    .join('\n')
}

function optionHelp(name: string, { value, multiple, help }: Option): string {
  const left = `  --${name}${value === undefined ? '' : ` ${value}`}`
  const lines = `${help}${multiple ? '; repeatable' : ''}`.split('\n')
  // A long name has a line of its own.
  const first = left.length < WIDTH + 2 ? [left.padEnd(WIDTH + 2) + lines.shift()] : [left]
  return [...first, ...lines.map((line) => ' '.repeat(WIDTH + 2) + line)].join('\n')
}
