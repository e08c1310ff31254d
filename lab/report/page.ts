/** The report as one HTML file, which needs no other host: style, charts and the record itself are in it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isWorthAWord } from '../bars.ts'
import { barChart } from './bar-chart.ts'
import { type Html, html, join, raw } from './html.ts'
import { lineChart } from './line-chart.ts'
import { busyWords, sizeWords } from './markdown.ts'
import type { Chapter, Column, Finding, Part, Published, Report, Row } from './model.ts'
import { shown } from './units.ts'

const here = (file: string) => readFileSync(new URL(`page/${file}`, import.meta.url), 'utf8')
const uplot = (file: string) => readFileSync(createRequire(import.meta.url).resolve(`uplot/dist/${file}`), 'utf8')

/** What draws the charts: uPlot's script and style, which go into the page. */
export interface Library {
  script: string
  style: string
}

/** Sheets, in the order in which a later rule wins. */
const STYLES = ['theme', 'text', 'frame', 'verdicts', 'facts', 'charts', 'tables', 'narrow']

export const installed = (): Library => ({ script: uplot('uPlot.iife.min.js'), style: uplot('uPlot.min.css') })

export function pageOf(report: Report, library: Library): string {
  const { chapters } = report
  const charts = chapters.flatMap(({ id, parts }) =>
    parts.flatMap((part) => part.charts.map((chart, at) => [`${id}-${part.id}-${at}`, chart] as const)),
  )
  const lines = Object.fromEntries(charts.filter(([, { kind }]) => kind === 'lines'))
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Millpond: the lab report</title>
<style>${raw(library.style)}${raw(STYLES.map((name) => here(`style/${name}.css`)).join(''))}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
${header(report)}
<nav aria-label="Chapters"><ul>
<li><a href="#summary">Summary</a></li>
${join(chapters.map(({ id, short }) => html`<li><a href="#${id}"><b>${id}</b><span> ${short}</span></a></li>`))}
<li><a href="#machine">Machine</a></li>
</ul></nav>
<main id="main">
${summary(chapters)}
${join(chapters.map(chapterOf))}
${machineOf(report)}
</main>
<footer>Written by <code>npm run lab</code> from the measurements of one run. The record behind this page is in it:
<a id="record" download="millpond-lab.json" href="#">download the JSON</a>.</footer>
<script type="application/json" id="report">${raw(inScript(report))}</script>
<script type="application/json" id="lines">${raw(inScript(lines))}</script>
<script>${raw(library.script)}</script>
<script>${raw(here('charts.js'))}</script>
</body>
</html>
`
  return page.text
}

/** JSON in which no `</script>` can end the element. */
const inScript = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c')

function header(report: Report): Html {
  const { at, machine, command, seconds } = report
  const busy = busyWords(report)
  const minutes = seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} minutes`
  return html`<header>
<p class="brand">Millpond <span>lab report</span></p>
<h1>Five services, each under the load that broke it</h1>
<p class="lede">The plain program of each write-up and Millpond, measured side by side in one run on one machine.
${sizeWords(report)}</p>
<p class="meta"><time datetime="${at}">${at.slice(0, 10)}, ${at.slice(11, 16)} UTC</time> · ${minutes} ·
${machine.cores} cores of ${machine.cpu} · <code>${command}</code></p>
${busy === undefined ? '' : html`<p class="busy">${busy}</p>`}
</header>`
}

function summary(chapters: readonly Chapter[]): Html {
  const row = ({ id, title, findings }: Chapter) => html`<article class="verdict">
<h3><a href="#${id}"><b>${id}</b> ${title}</a></h3>
${column(id, 'Falls over', 'falls', findings)}
${column(id, 'Holds', 'holds', findings)}
</article>`
  const found = chapters.filter(({ findings }) => findings.length > 0)
  const missed = chapters.flatMap(({ id, findings }) =>
    findings.filter(({ verdict }) => verdict === 'missed').map((finding) => ({ id, finding })),
  )
  return html`<section id="summary" class="summary">
<h2>In a minute</h2>
${join(found.map(row))}
${missed.length === 0 ? '' : missedOf(missed)}
</section>`
}

function column(id: string, head: string, verdict: Finding['verdict'], findings: readonly Finding[]): Html {
  const some = findings.filter((each) => each.verdict === verdict)
  const items = some.map(
    ({ figure, text, part }) =>
      html`<li><a href="#${id}-${part}"><strong>${figure}</strong> <span>${text}</span></a></li>`,
  )
  return html`<div class="${verdict}"><h4>${head}</h4>${
    items.length === 0 ? html`<p class="none">nothing here</p>` : html`<ul>${join(items)}</ul>`
  }</div>`
}

function missedOf(missed: readonly { id: string; finding: Finding }[]): Html {
  const items = missed.map(
    ({ id, finding }) =>
      html`<li><a href="#${id}-${finding.part}"><strong>${id} · ${finding.figure}</strong> <span>${finding.text}</span></a></li>`,
  )
  return html`<div class="missed"><h4>Promised, and missed in this run</h4><ul>${join(items)}</ul></div>`
}

function chapterOf(chapter: Chapter): Html {
  const { id, title, question, setUp, published, parts, failures, commands } = chapter
  return html`<section id="${id}" class="chapter">
<h2><b>${id}</b> ${title}</h2>
<p class="question">${question}</p>
<div class="ground">
<div><h3>Set-up</h3><ul>${join(setUp.map((line) => html`<li>${line}</li>`))}</ul></div>
${published.length === 0 ? '' : html`<div>${join(published.map(publishedOf))}</div>`}
</div>
${join(parts.map((part) => partOf(id, part)))}
${failures.length === 0 ? '' : html`<div class="missed"><h4>Not measured</h4><ul>${join(failures.map((each) => html`<li>${each}</li>`))}</ul></div>`}
<details class="commands"><summary>Measure it again</summary><pre><code>${commands.join('\n')}</code></pre></details>
</section>`
}

function publishedOf({ title, head, rows, note }: Published): Html {
  const cells = (row: string[]) =>
    html`<tr>${join(row.map((cell, at) => (at === 0 ? html`<th scope="row">${cell}</th>` : html`<td data-label="${head[at] ?? ''}">${cell}</td>`)))}</tr>`
  return html`<h3>${title}</h3>
<table class="published"><thead><tr>${join(head.map((each) => html`<th scope="col">${each}</th>`))}</tr></thead>
<tbody>${join(rows.map(cells))}</tbody></table>
${note === undefined ? '' : html`<p class="note">${note}</p>`}`
}

function partOf(chapter: string, part: Part): Html {
  const { title, about, charts, rows, notes } = part
  const id = `${chapter}-${part.id}`
  const pictures = charts.map((chart, at) =>
    chart.kind === 'bars' ? barChart(chart, part) : lineChart(chart, `${id}-${at}`),
  )
  return html`<section id="${id}" class="part">
<h3>${title}</h3>
<p>${about}</p>
${pictures.length === 0 ? '' : html`<div class="charts">${join(pictures)}</div>`}
${rows.length === 0 ? '' : tableOf(part)}
${notes.length === 0 ? '' : html`<ul class="notes">${join(notes.map((note) => html`<li>${note}</li>`))}</ul>`}
</section>`
}

function tableOf({ columns, rows, title, charts }: Part): Html {
  const best = new Map(columns.map((column) => [column.key, bestOf(column, rows)]))
  const body = rows.map((row) => {
    const name = html`<th scope="row"><i class="dot ${row.kind}"></i>${row.title}${promises(row)}</th>`
    if (row.skipped !== undefined) {
      return html`<tr class="skipped">${name}<td class="reason" colspan="${columns.length}">${row.skipped}</td></tr>`
    }
    const cells = columns.map((column) => cellOf(row, column, best.get(column.key)))
    return html`<tr class="${row.kind}">${name}${join(cells)}</tr>`
  })
  // On a phone, the page's script folds a table whose figures are drawn above it.
  return html`<details open class="table${charts.length > 0 ? ' drawn' : ''}"><summary>All figures</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="figures"><caption class="hidden">${title}</caption>
<thead><tr><td></td>${join(columns.map(({ label }) => html`<th scope="col">${label}</th>`))}</tr></thead>
<tbody>${join(body)}</tbody></table></div></details>`
}

/** Of the variants that do the work; a ceiling does none. */
function bestOf({ key, better }: Column, rows: readonly Row[]): number | undefined {
  if (better === undefined) return undefined
  const values = rows.filter(({ kind }) => kind !== 'ceiling').map(({ figures }) => figures[key])
  const numbers = values.filter((value): value is number => typeof value === 'number')
  if (numbers.length < 2) return undefined
  const best = better === 'more' ? Math.max(...numbers) : Math.min(...numbers)
  // Where most are the best, the mark tells nothing.
  return numbers.filter((value) => value === best).length > numbers.length / 2 ? undefined : best
}

function cellOf(row: Row, { key, label, unit }: Column, best: number | undefined): Html {
  const value = row.figures[key]
  const published = row.published?.[key]
  const isBest = best !== undefined && value === best && row.kind !== 'ceiling'
  const marks = `${unit === 'text' ? 'words' : ''}${isBest ? ' best' : ''}${value === undefined ? ' empty' : ''}`
  return html`<td data-label="${label}" class="${marks.trim()}">${shown(value, unit)}${
    published === undefined ? '' : html`<small>published ${shown(published, unit)}</small>`
  }</td>`
}

/** What the design promises of a variant, under its name. */
function promises({ bars }: Row): Html {
  const words = bars.filter(isWorthAWord).map(({ text, got, cleared }) => {
    const says = cleared ? 'held' : 'broken'
    return html`<span class="promise ${says}"><b aria-label="${says}">${cleared ? '✓' : '✗'}</b> ${text}${cleared ? '' : html`, got ${got}`}</span>`
  })
  return join(words)
}

function machineOf({ machine, versions, command, at, seconds }: Report): Html {
  const facts: [string, string][] = [
    ['Processor', `${machine.cores} cores of ${machine.cpu}`],
    ['Memory', machine.memory],
    ['System', machine.system],
    ['Disk', `${machine.filesystem}; one fdatasync takes ${machine.fdatasync.toFixed(0)} µs`],
    ['Load before the run', `${machine.load.toFixed(1)} (one minute's average)`],
    ['Load generator', machine.generator],
    ['Command', command],
    ['Begun', `${at.slice(0, 19).replace('T', ' ')} UTC, for ${Math.round(seconds)} s`],
  ]
  const list = (pairs: readonly (readonly [string, string])[]) =>
    html`<dl>${join(pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`))}</dl>`
  return html`<section id="machine" class="chapter">
<h2>The machine</h2>
<p class="question">Load generator, services, consumers and stores share it. Figures of one run compare with each other; those of two machines show only the same shape.</p>
<div class="ground"><div>${list(facts)}</div><div><h3>Versions</h3>${list(Object.entries(versions))}</div></div>
</section>`
}
