/**
 * Makes what the docs have of the command's help, and the list of pages for agents: `node test/cli/pages.ts` after a change of a
 * verb or of docs/README.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { programHelp, verbHelp } from '../../src/cli/help.ts'
import { VERBS } from '../../src/cli/verbs/index.ts'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, docs), 'utf8')
const BEGIN = '<!-- What follows is made of the help by `node test/cli/pages.ts`; change that, not this. -->'

/** `docs/cli.md`: what is written there by hand, then the help of every verb. */
export async function cliPage(): Promise<string> {
  const [byHand = ''] = read('cli.md').split(BEGIN)
  const verbs = await Promise.all(Object.values(VERBS).map(async (load) => (await load()).verb))
  const help = (text: string) => `\`\`\`text\n${text.trimEnd()}\n\`\`\``
  const sections = verbs.map((verb) => `### ${verb.name}\n\n${help(verbHelp(verb))}`)
  return `${byHand}${BEGIN}\n\n## Every verb\n\n${help(programHelp(verbs))}\n\n${sections.join('\n\n')}\n`
}

/** `docs/llms.txt`, as https://llmstxt.org has it: the pages of docs/README.md, each with what is in it. */
export function llmsText(): string {
  const { description }: { description: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  )
  const sections = read('README.md')
    .split(/^\*\*/m)
    .slice(1)
    .map((section) => {
      const [, title = '', rest = ''] = /^(.*?)\*\*(.*)$/s.exec(section) ?? []
      const items = rest
        .split(/^- /m)
        .slice(1)
        .flatMap((item) => itemsOf(item.replaceAll(/\s+/g, ' ').trim()))
      return `## ${title}\n\n${items.join('\n')}\n`
    })
  return `# Millpond

> ${description}

The pages are Markdown, beside this file. In code, \`import { Millpond } from 'millpond'\`; the command is \`npx millpond --help\`, and \`millpond mcp\` gives agents a running store as tools.

${sections.join('\n')}`
}

/** A line of docs/README.md, whose first link is what it tells of; or a line of several links, each with the first words of its page. */
function itemsOf(item: string): string[] {
  const links = [...item.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)]
  const [first, ...others] = links
  const told = /^\[[^\]]+\]\([^)]+\)[^:[\]]*: (.*)$/.exec(item)?.[1]
  if (first === undefined) return []
  if (told !== undefined && others.length === 0) return [`- [${first[1]}](${first[2]}): ${told}`]
  return links.map(([, title, target = '']) => `- [${title}](${target})${aboutPage(target)}`)
}

/** The first sentence of a page, if it begins with one. */
function aboutPage(target: string): string {
  if (!/^[\w-]+\.md$/.test(target)) return ''
  const text = read(target)
    .replace(/^<!--.*?-->\s*/s, '')
    .replace(/^# .*\n+/, '')
  const [, sentence = ''] = /^((?![|]|```)[^\n]*?(?:\n(?!\n)[^\n]*?)*?\.)(?:\s|$)/.exec(text) ?? []
  const plain = sentence.replaceAll(/\s+/g, ' ').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
  return plain === '' ? '' : `: ${plain.replace(/\.$/, '')}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('cli.md', docs), await cliPage())
  writeFileSync(new URL('llms.txt', docs), llmsText())
}
