/** `millpond init` */
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { jsonText } from '../../web/answer.ts'
import { JSON_LINES } from '../arguments.ts'
import { type FilesFor, FRAMEWORKS, filesFor, STORES } from '../init/files.ts'
import { plain } from '../table.ts'
import { UsageError } from '../usage-error.ts'
import { defineVerb, EXIT } from '../verb.ts'

export const verb = defineVerb({
  name: 'init',
  summary: 'writes a producer behind a web server, and a worker, to begin with',
  operands: ['[FOLDER]'],
  options: {
    framework: { value: 'NAME', help: `${FRAMEWORKS.join(', ')}; hono unless given` },
    store: { value: 'KIND', help: `${STORES.join(', ')}; sqlite unless given` },
    typescript: { help: 'writes .ts, which Node runs as it is; so it does beside a tsconfig.json' },
    'dry-run': { help: 'only tells the names of the files' },
    ...JSON_LINES,
  },
  notes: 'FOLDER is this one unless given. No file is overwritten.',
  async run({ args, terminal }) {
    const folder = args.operand(0) ?? '.'
    const isTypeScript = args.flag('typescript') || existsSync(join(folder, 'tsconfig.json'))
    const chosen: FilesFor = {
      framework: args.choice('framework', FRAMEWORKS) ?? 'hono',
      store: args.choice('store', STORES) ?? 'sqlite',
      ending: isTypeScript ? 'ts' : 'js',
    }
    const has = (name: string) => existsSync(join(folder, name))
    const { files, install, start } = filesFor(chosen, has('package.json'), has('node_modules/millpond'))
    const taken = Object.keys(files).filter((name) => existsSync(join(folder, name)))
    if (taken.length > 0) {
      terminal.err(
        `millpond: ${taken.join(', ')} ${taken.length === 1 ? 'is' : 'are'} there already; nothing was written\n`,
      )
      return EXIT.refused
    }
    if (!args.flag('dry-run')) {
      for (const [name, text] of Object.entries(files)) {
        const path = join(folder, name)
        await mkdir(dirname(path), { recursive: true })
        await writeFile(path, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
          throw new UsageError(`${plain(path)} cannot be written (${error.code ?? 'unknown'})`)
        })
      }
    }
    const names = Object.keys(files)
    if (args.flag('json')) terminal.out(`${jsonText({ files: names, install, start })}\n`)
    else {
      for (const name of names) terminal.out(`${plain(join(folder, name))}\n`)
      terminal.out(
        `\n${[folder === '.' ? '' : `cd ${folder}`, install, ...start].filter((line) => line !== '').join('\n')}\n`,
      )
    }
    return EXIT.done
  },
})
