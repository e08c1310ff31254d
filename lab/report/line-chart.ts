/** A place for a chart that the page's script draws with uPlot, and the table behind it. */
import { type Html, html, join } from './html.ts'
import type { LineChart, Series } from './model.ts'
import { shown } from './units.ts'

/** Rows of the table behind a chart. */
const SAMPLES = 12

export function lineChart({ title, summary, x, y, series, marks = [] }: LineChart, id: string): Html {
  const all = [...new Set(series.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b)
  const step = Math.max(1, Math.ceil(all.length / SAMPLES))
  const some = all.filter((_, at) => at % step === 0 || at === all.length - 1)
  const row = (at: number) =>
    html`<tr><th scope="row">${shown(at, x.unit)}</th>${join(series.map((each) => html`<td data-label="${each.title}">${shown(near(each, at), y.unit)}</td>`))}</tr>`
  const legend = series.map((each, at) => html`<li><i class="line" data-series="${at}"></i>${each.title}</li>`)
  return html`<figure class="lines">
<figcaption>${title} <small>${[y.label, ...(y.log ? ['logarithmic'] : [])].join(', ')}</small></figcaption>
<div class="plot" id="${id}" role="img" aria-label="${summary}"></div>
<ul class="legend" data-for="${id}">${join(legend)}</ul>
${marks.length === 0 ? '' : html`<p class="key">${marks.map((mark) => `${shown(mark.x, x.unit)}: ${mark.label}`).join(' · ')}</p>`}
<details><summary>The figures behind it</summary><div class="scroll"><table class="figures"><thead><tr><th scope="col">${x.label}</th>${join(series.map((each) => html`<th scope="col">${each.title}</th>`))}</tr></thead>
<tbody>${join(some.map(row))}</tbody></table></div></details>
</figure>`
}

/** The last figure at or before it. */
function near({ points }: Series, at: number): number | undefined {
  return points.findLast(([x]) => x <= at)?.[1]
}
