/** The lab's report is made from a record alone: one page that needs no other host, and in which no text becomes markup. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { html } from '../../lab/report/html.ts'
import { markdownOf } from '../../lab/report/markdown.ts'
import type { Report } from '../../lab/report/model.ts'
import { pageOf } from '../../lab/report/page.ts'
import { HOSTILE, RECORD } from './record.ts'

/** The page has them from an installed package. */
const LIBRARY = { script: '/* the script */', style: '/* the style */' }
const page = pageOf(RECORD, LIBRARY)

/** Elements with their attributes, without what is in scripts and styles. */
const markup = page.replace(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, '<$1></$1>')

test('no text becomes markup', () => {
  assert.ok(!markup.includes('<img'))
  assert.ok(!/\sonerror="/.test(markup))
  assert.ok(
    markup.includes('&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;x&#39;)&quot;&gt; &amp; &quot;quoted&quot;'),
  )
  assert.equal(html`<b title="${'"'}">${'<'}${html`<i></i>`}</b>`.text, '<b title="&quot;">&lt;<i></i></b>')
})

test('the page holds its record, which a text cannot end early', () => {
  const [, record = ''] = /<script type="application\/json" id="report">([\s\S]*?)<\/script>/.exec(page) ?? []
  assert.deepEqual(JSON.parse(record), RECORD)
  assert.ok(!record.includes('<'))
})

test('the page asks no other host', () => {
  const asked = [...markup.matchAll(/\s(?:src|href|action|poster|srcset|data)="([^"]*)"/g)].map(([, url = '']) => url)
  assert.deepEqual(
    asked.filter((url) => !url.startsWith('#')),
    [],
  )
  assert.ok(!/@import|url\(|<link|<iframe|<base/.test(page))
})

test('every link leads to a part of the page, and every line chart has its place', () => {
  const ids = new Set([...markup.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id))
  const links = [...markup.matchAll(/\shref="#([^"]+)"/g)].map(([, id]) => id)
  assert.ok(links.includes('E1-rates'))
  for (const id of links) assert.ok(ids.has(id), `nothing has the id ${id}`)
  const [, lines = ''] = /<script type="application\/json" id="lines">([\s\S]*?)<\/script>/.exec(page) ?? []
  for (const id of Object.keys(JSON.parse(lines))) assert.ok(ids.has(id), `no place for the chart ${id}`)
})

test('measured and published figures, endless ones, missed promises and what was not measured are shown', () => {
  for (const words of [
    '1,230',
    'published 1,270',
    '∞',
    '12.3 ms',
    'Not measured',
    'nginx: it is not installed',
    'npm run lab -- --only E1',
  ]) {
    assert.ok(markup.includes(words), words)
  }
  assert.match(markup, /class="promise broken"><b aria-label="broken">✗<\/b> ≤ 10 ms p95, got 12\.3 ms p95/)
  assert.ok(!markup.includes('≤ 0 lost'), 'a promise of none is worth a word only when it is missed')
})

test('a report without any outcome is a page, too', () => {
  const empty: Report = {
    ...RECORD,
    chapters: RECORD.chapters.map((chapter) => ({ ...chapter, parts: [], findings: [] })),
  }
  assert.match(pageOf(empty, LIBRARY), /Not measured/)
})

test('a busy machine is told of, an idle one is not', () => {
  assert.ok(!markup.includes('busy with other work'))
  const busy: Report = { ...RECORD, machine: { ...RECORD.machine, load: 7.5 } }
  for (const text of [pageOf(busy, LIBRARY), markdownOf(busy)]) assert.match(text, /a load of 7\.5 on 2 cores/)
})

test('Markdown has the same figures', () => {
  const text = markdownOf(RECORD)
  assert.match(text, /\| Millpond on SQLite +\| +5,680 \|/)
  assert.match(text, /1,230 \(published 1,270\)/)
  assert.match(text, /Not measured:\n\n- nginx/)
  assert.ok(text.includes(HOSTILE))
})
