/** The pages that explain the house stay short, and none is missing from its list. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, root), 'utf8')
const pagesIn = (folder: string) =>
  readdirSync(new URL(folder, root)).filter((file) => file.endsWith('.md') && file !== 'README.md')
const linksOf = (page: string) => [...read(page).matchAll(/\]\(([^)#]+)/g)].map((match) => match[1])

test('ARCHITECTURE.md is one page: at most 120 lines of 100 characters, and 1,300 words', () => {
  const text = read('ARCHITECTURE.md')
  const lines = text.trimEnd().split('\n')
  assert.ok(lines.length <= 120, `${lines.length} lines`)
  assert.deepEqual(
    lines.filter((line) => line.length > 100),
    [],
  )
  assert.ok(text.split(/\s+/).length <= 1300)
})

test('each decision has a number of its own, and says its context and what was decided', () => {
  const decisions = pagesIn('docs/decisions/')
  const numbers = decisions.map((file) => /^(\d{3})-[a-z0-9-]+\.md$/.exec(file)?.[1])
  assert.equal(new Set(numbers).size, decisions.length)
  for (const file of decisions) {
    assert.notEqual(/^\d{3}-/.exec(file), null, file)
    const text = read(`docs/decisions/${file}`)
    assert.match(text, /^# .+\n\n## Context\n\n[\s\S]+\n## Decision\n\n/, file)
    assert.ok(text.split('\n').length <= 40, `${file} is long`)
  }
})

test('the table of conformance was written by a run without failures', () => {
  const failures = read('docs/contributing/conformance.md').match(/^\| [\w ,]+(?= +\|.*FAILED)/gm)
  assert.deepEqual(failures ?? [], [], 'npm run docs writes it anew')
})

test('the lists of pages name every page of their folder', () => {
  for (const folder of ['docs/', 'docs/decisions/', 'docs/contributing/']) {
    const listed = new Set(linksOf(`${folder}README.md`))
    assert.deepEqual(
      pagesIn(folder).filter((file) => !listed.has(file)),
      [],
      folder,
    )
  }
})
