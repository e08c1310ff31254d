/**
 * The code blocks of the README and the documentation, each as a program.
 *
 * What stands behind a block's language says how it becomes one:
 *
 *   ```ts prelude=NAME         `preludes/NAME.ts` stands before it: what the page's reader already has, such as a pond. What follows the line
 *                              `// After the block:` there stands behind it. A line `// BLOCK` marks another place for it
 *   ```ts no-run WHY           it is checked, and not run
 *   ```console                 the lines after `$ ` are shell; the others show what they print, and are not compared
 *
 * Nothing else is added, except that `redis://localhost` is the test's server.
 */
import { readdirSync, readFileSync } from 'node:fs'

const ROOT = new URL('../../', import.meta.url)
export const LANGUAGES = ['ts', 'sh', 'console', 'sql', 'json', 'yaml', 'text'] as const
export type Language = (typeof LANGUAGES)[number]

export interface Block {
  /** The page and the line where it begins, as `docs/queue.md:37`. */
  readonly at: string
  readonly page: string
  readonly language: string
  /** As printed. */
  readonly code: string
  readonly prelude: string | undefined
  /** Why it is not run. */
  readonly noRun: string | undefined
}

const FENCE = /^```(\w*)(?: prelude=([\w-]+))?(?: no-run (.+))?$/

export function codeBlocks(): Block[] {
  const docs = readdirSync(new URL('docs/', ROOT)).filter((name) => name.endsWith('.md'))
  return ['README.md', ...docs.map((name) => `docs/${name}`)].flatMap(blocksOf)
}

/** @throws where a fence says something that is not understood, so that a misspelt word does not leave a block out */
function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let open: { start: number; match: RegExpExecArray } | undefined
  const lines = readFileSync(new URL(page, ROOT), 'utf8').split('\n')
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith('```')) continue
    if (open === undefined) {
      const match = FENCE.exec(line)
      if (match === null) throw new Error(`${page}:${index + 1}: ${line}`)
      open = { start: index, match }
      continue
    }
    const [, language = '', prelude, noRun] = open.match
    const code = `${lines.slice(open.start + 1, index).join('\n')}\n`
    blocks.push({ at: `${page}:${open.start + 1}`, page, language: language || 'text', code, prelude, noRun })
    open = undefined
  }
  return blocks
}

/** The program that a block of TypeScript or shell is. */
export function programOf({ code: printed, prelude, language }: Block): string {
  const isConsole = language === 'console'
  const code = isConsole ? (printed.match(/(?<=^\$ ).*\n/gm) ?? []).join('') : printed
  if (prelude === undefined) return code
  const text = readFileSync(new URL(`preludes/${prelude}.${isConsole ? 'sh' : language}`, import.meta.url), 'utf8')
  const [before = '', after = ''] = text.split('// After the block:\n')
  const placed = before.includes('// BLOCK') ? before.replace('// BLOCK', () => code) : `${before}\n${code}`
  return `${placed}\n${after}`
}
