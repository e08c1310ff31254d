/** Bars of one column, drawn by the page's style alone: they need no script, and a narrow screen is no trouble. */
import { type Html, html, join } from './html.ts'
import type { BarChart, Part, Row } from './model.ts'
import { shown } from './units.ts'

export function barChart({ title, column, log = false }: BarChart, { columns, rows }: Part): Html {
  const found = columns.find(({ key }) => key === column)
  if (found === undefined) throw new Error(`no column is named ${column}`)
  const value = (row: Row) => numeric(row.figures[column])
  const published = (row: Row) => numeric(row.published?.[column])
  const drawn = rows.filter((row) => row.skipped === undefined && row.figures[column] !== undefined)
  const numbers = drawn.flatMap((row) => [value(row), published(row)]).filter((each) => each !== undefined)
  const most = Math.max(...numbers)
  const least = Math.min(...numbers.filter((each) => each > 0))
  const share = (each: number): number => {
    if (each <= 0) return 0
    if (!log) return each / most
    // The least has a tenth, so that it can be seen.
    return most === least ? 1 : 0.1 + (0.9 * Math.log(each / least)) / Math.log(most / least)
  }
  const hasPublished = drawn.some((row) => published(row) !== undefined)
  const line = (row: Row): Html => {
    const [measured, other] = [value(row), published(row)]
    const width = measured === undefined ? (row.figures[column] === null ? 1 : 0) : share(measured)
    const mark = other === undefined ? '' : html`<i class="mark" style="left:${percent(share(other))}"></i>`
    return html`<li class="${row.kind}${row.figures[column] === null ? ' endless' : ''}"><span class="name">${row.title}</span>
<span class="track"><i class="fill" style="width:${percent(width)}"></i>${mark}</span>
<span class="value">${shown(row.figures[column], found.unit)}</span></li>`
  }
  const hint = [
    ...(found.better === undefined ? [] : [found.better === 'more' ? 'more is better' : 'less is better']),
    ...(log ? ['logarithmic'] : []),
  ]
  return html`<figure class="bars"><figcaption>${title}${hint.length === 0 ? '' : html` <small>${hint.join(', ')}</small>`}</figcaption>
<ul>${join(drawn.map(line))}</ul>
${hasPublished ? html`<p class="key"><i class="mark"></i> published, on another machine</p>` : ''}</figure>`
}

const numeric = (value: number | string | null | undefined): number | undefined =>
  typeof value === 'number' ? value : undefined

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`
