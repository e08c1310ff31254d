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
    'zsh:  millpond completion zsh > "${fpath[1]}/_millpond"\n' +
    'fish: millpond completion fish > ~/.config/fish/completions/millpond.fish',
  async run({ args, terminal }) {
    const shell = SHELLS.find((name) => name === args.operand(0))
    if (shell === undefined) throw new UsageError(`SHELL is one of ${SHELLS.join(', ')}`)
    const { VERBS } = await import('./index.ts')
    const verbs = await Promise.all(Object.values(VERBS).map(async (load) => (await load()).verb))
    terminal.out(completionFor(shell, verbs))
    return EXIT.done
  },
})
