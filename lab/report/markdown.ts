/** The report as Markdown, for a pull request or a terminal. */
import { isWorthAWord } from '../bars.ts'
import type { Chapter, Column, Finding, Part, Report, Row } from './model.ts'
import { shown } from './units.ts'

const MARKS: Record<Finding['verdict'], string> = { falls: '✗ falls over', holds: '✓ holds', missed: '! missed' }

export function markdownOf(report: Report): string {
  const { machine, chapters } = report
  const busy = busyWords(report)
  const lines = [
    '# The lab: what falls over, what holds',
    '',
    `${report.at.slice(0, 16).replace('T', ' ')} UTC, \`${report.command}\`, ${Math.round(report.seconds)} s. ${sizeWords(report)}`,
    ...(busy === undefined ? [] : ['', busy]),
    '',
    ...chapters.flatMap(({ id, findings }) => findings.map((each) => findingLine(id, each))),
    ...chapters.flatMap(chapterLines),
    '',
    '## The machine',
    '',
    `${machine.cores} cores of ${machine.cpu}, ${machine.memory}, ${machine.system}, load ${machine.load.toFixed(1)} before the run.`,
    `${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs. Load generator: ${machine.generator}.`,
    '',
    Object.entries(report.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  ]
  return `${lines.join('\n')}\n`
}

/** Undefined where the machine had nothing else to do. */
export function busyWords({ machine: { load, cores } }: Pick<Report, 'machine'>): string | undefined {
  if (load < cores / 2) return undefined
  return `The machine was busy with other work when the run began: a load of ${load.toFixed(1)} on ${cores} cores. Latencies and rates suffer from it, and promises may be missed for it.`
}

export function sizeWords({ size }: Pick<Report, 'size'>): string {
  if (size === 'full') return 'At the published sizes.'
  if (size === 'smoke') return 'A smoke run: it shows that the lab works, and no figure of it means anything.'
  return 'Shorter than the published runs; npm run lab -- --full takes their sizes.'
}

const findingLine = (id: string, { verdict, figure, text }: Finding): string =>
  `- **${MARKS[verdict]}** · ${id} · ${figure} · ${text}`

function chapterLines(chapter: Chapter): string[] {
  const { id, title, question, setUp, published, parts, failures, commands } = chapter
  return [
    '',
    `## ${id} · ${title}`,
    '',
    question,
    '',
    ...setUp.map((line) => `- ${line}`),
    ...published.flatMap(({ title: of, head, rows, note }) => [
      '',
      `### ${of}`,
      '',
      ...table(head, rows),
      ...(note === undefined ? [] : ['', note]),
    ]),
    ...parts.flatMap(partLines),
    ...(failures.length === 0 ? [] : ['', 'Not measured:', '', ...failures.map((each) => `- ${each}`)]),
    '',
    '```sh',
    ...commands,
    '```',
  ]
}

function partLines({ title, about, columns, rows, notes }: Part): string[] {
  const hasBars = rows.some(({ bars, skipped }) => skipped !== undefined || bars.some(isWorthAWord))
  const head = ['', ...columns.map(({ label }) => label), ...(hasBars ? ['promise'] : [])]
  const cells = rows.map((row) => [
    row.title,
    ...columns.map((column) => cellOf(row, column)),
    ...(hasBars ? [barWords(row)] : []),
  ])
  return [
    '',
    `### ${title}`,
    '',
    about,
    '',
    ...table(head, cells),
    ...(notes.length > 0 ? [''] : []),
    ...notes.map((note) => `- ${note}`),
  ]
}

function cellOf(row: Row, { key, unit }: Column): string {
  if (row.skipped !== undefined) return 'skipped'
  const published = row.published?.[key]
  const measured = shown(row.figures[key], unit)
  return published === undefined ? measured : `${measured} (published ${shown(published, unit)})`
}

export function barWords({ bars, skipped }: Row): string {
  if (skipped !== undefined) return skipped
  return bars
    .filter(isWorthAWord)
    .map(({ text, got, cleared }) => `${cleared ? '✓' : '✗'} ${text} (${got})`)
    .join(', ')
}

/** Columns are as wide on a terminal as in a page; all but the first stand to the right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows]
  const widths = head.map((_, at) => Math.max(3, ...all.map((cells) => (cells[at] ?? '').length)))
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (at === 0 ? (cells[at] ?? '').padEnd(width) : (cells[at] ?? '').padStart(width))).join(' | ')} |`
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), line(rule), ...rows.map(line)]
}
