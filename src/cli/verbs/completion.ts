/** `millpond completion` */
import { completionFor, SHELLS } from '../completion.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'completion',
  summary: 'a script that completes verbs and options: bash, zsh or fish',
  operands: ['SHELL'],
  options: {},
  notes:
    'bash: millpond completion bash > ~/.local/share/bash-completion/completions/millpond\n' +
    'zsh:  millpond completion zsh > "$fpath[1]/_millpond"\n' +
    'fish: millpond completion fish > ~/.config/fish/completions/millpond.fish',
  async run({ args, terminal, program }) {
    const shell = SHELLS.find((name) => name === args.operand(0))
    if (shell === undefined) throw new UsageError(`SHELL is one of ${SHELLS.join(', ')}`)
    terminal.out(completionFor(shell, await program.verbs()))
    return EXIT.done
  },
})
