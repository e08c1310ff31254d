/** Scripts with which a shell completes verbs and options, made of what the verbs declare. They ask no store. */
import type { Verb } from './verb.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export function completionFor(shell: Shell, verbs: readonly Verb[]): string {
  if (shell === 'bash') return bash(verbs)
  return shell === 'zsh' ? zsh(verbs) : fish(verbs)
}

const optionsOf = ({ options }: Verb): [name: string, help: string, value: string | undefined][] => [
  ...Object.entries(options).map(([name, { help, value }]): [string, string, string | undefined] => [
    name,
    firstLine(help),
    value,
  ]),
  ['help', 'its options', undefined],
]
const firstLine = (text: string): string => text.split('\n')[0] ?? ''
const isFile = (value: string | undefined): boolean => value === 'FILE' || value === 'FOLDER'
/** Inside single quotes of bash and zsh. */
const quoted = (text: string): string => text.replaceAll("'", "'\\''")

function bash(verbs: readonly Verb[]): string {
  const cases = verbs.map((verb) => {
    const options = optionsOf(verb).map(([name]) => `--${name}`)
    return `    ${verb.name}) words='${options.join(' ')}' ;;`
  })
  const files = [
    ...new Set(verbs.flatMap(optionsOf).flatMap(([name, , value]) => (isFile(value) ? [`--${name}`] : []))),
  ]
  return `# millpond for bash
_millpond() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${[...verbs.map(({ name }) => name), 'help'].join(' ')} --help --version' -- "$current"))
    return
  fi
  case "$before" in
    ${files.length > 0 ? files.join('|') : '--'}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    help) words='${verbs.map(({ name }) => name).join(' ')}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _millpond millpond
`
}

function zsh(verbs: readonly Verb[]): string {
  // In a description of zsh, brackets and colons have a meaning.
  const words = (text: string) => quoted(text.replaceAll(/[[\]:\\]/g, (found) => `\\${found}`))
  const cases = verbs.map((verb) => {
    const specs = optionsOf(verb).map(([name, help, value]) => {
      const action = value === undefined ? '' : `:${words(value)}:${isFile(value) ? '_files' : ''}`
      const repeats = verb.options[name]?.multiple ? '*' : ''
      return `        '${repeats}--${name}[${words(help)}]${action}'`
    })
    return `      ${verb.name})\n        _arguments \\\n${specs.join(' \\\n')} ;;`
  })
  return `#compdef millpond
_millpond() {
  local -a verbs
  verbs=(
${verbs.map(({ name, summary }) => `    '${name}:${words(summary)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$verb" in
${cases.join('\n')}
  esac
}
if [ "$funcstack[1]" = "_millpond" ]; then
  _millpond "$@"
else
  compdef _millpond millpond
fi
`
}

function fish(verbs: readonly Verb[]): string {
  // Inside single quotes of fish.
  const words = (text: string) => text.replaceAll(/[\\']/g, (found) => `\\${found}`)
  const lines = verbs.flatMap((verb) => [
    `complete -c millpond -n __fish_use_subcommand -a ${verb.name} -d '${words(verb.summary)}'`,
    ...optionsOf(verb).map(([name, help, value]) => {
      const takes = value === undefined ? '' : isFile(value) ? ' -r -F' : ' -x'
      return `complete -c millpond -n '__millpond_verb ${verb.name}' -l ${name}${takes} -d '${words(help)}'`
    }),
  ])
  return `# millpond for fish
# Whether the first word is the verb: a queue may have the name of another one.
function __millpond_verb
  set -l words (commandline -poc)
  test (count $words) -ge 2; and test "$words[2]" = "$argv[1]"
end
complete -c millpond -f
complete -c millpond -n __fish_use_subcommand -a help -d 'the options of a verb'
complete -c millpond -n __fish_use_subcommand -l help -l version
complete -c millpond -n '__millpond_verb help' -a '${verbs.map(({ name }) => name).join(' ')}'
${lines.join('\n')}
`
}
