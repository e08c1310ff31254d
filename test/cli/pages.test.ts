/** The pages that tell of the command are what it says itself. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { programHelp } from '../../src/cli/help.ts'
import { VERBS } from '../../src/cli/verbs/index.ts'
import { cliPage, llmsText } from './pages.ts'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, docs), 'utf8')
const advice = 'run node test/cli/pages.ts'

test('docs/cli.md has the help of every verb', async () => {
  assert.equal(read('cli.md'), await cliPage(), advice)
})

test('docs/llms.txt names every page', () => {
  const text = read('llms.txt')
  assert.equal(text, llmsText(), advice)
  for (const page of readdirSync(docs).filter((name) => name.endsWith('.md') && name !== 'README.md')) {
    assert.ok(text.includes(`(${page})`), page)
  }
  assert.match(text, /^# Millpond\n\n> /)
})

test('every command in the docs is one that there is, with options that it has', async () => {
  const verbs = new Map(
    await Promise.all(
      Object.values(VERBS).map(async (load) => {
        const { verb } = await load()
        return [verb.name, verb] as const
      }),
    ),
  )
  const wrong: string[] = []
  for (const page of readdirSync(docs).filter((name) => name.endsWith('.md'))) {
    // By hand, and in blocks: not in sentences, where millpond is a name.
    const blocks = [...read(page).matchAll(/^```(?:sh|console)\b[^\n]*\n(.*?)^```/gms)].map(([, block = '']) => block)
    for (const [, name = '', rest = ''] of blocks
      .join('\n')
      .replaceAll('\\\n', ' ')
      .matchAll(/^(?:\$ |[A-Z_]+=\S+ )*(?:npx )?millpond ([a-z]+)\b([^|\n]*)/gm)) {
      const verb = verbs.get(name)
      if (name === 'help' || name === 'dashboard') continue
      const options = [...rest.matchAll(/(?<=\s)--([a-z-]+)/g)].map(([, option = '']) => option)
      const unknown = options.filter(
        (option) => option !== 'help' && verb !== undefined && !Object.hasOwn(verb.options, option),
      )
      if (verb === undefined || unknown.length > 0)
        wrong.push(`${page}: millpond ${name} ${unknown.map((option) => `--${option}`)}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('the help fits a terminal of 120 columns, and names every verb', async () => {
  const verbs = await Promise.all(Object.values(VERBS).map(async (load) => (await load()).verb))
  const help = programHelp(verbs)
  assert.deepEqual(
    help.split('\n').filter((line) => line.length > 120),
    [],
  )
  assert.deepEqual(
    verbs.map(({ name }) => name),
    Object.keys(VERBS),
  )
})
