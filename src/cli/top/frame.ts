/** A frame of `top`: from what is known to the lines of a screen. It knows no terminal, so a test can look at it. */
import { attentionText, attentionTo } from '../attention.ts'
import { counted, lasting, NONE, perSecond, short, timeOrNone } from '../figures.ts'
import { cut, plain } from '../table.ts'
import { linesOf, type QueueLine, type Sample, type Sort, sorted } from './sample.ts'

export interface Frame {
  now: Sample
  before: Sample | undefined
  /** The kind of the store. */
  store: string
  /** As a person reads it. */
  clock: string
  minutes: number
  sort: Sort
  /** Queues that are scrolled past. */
  skip: number
  columns: number
  rows: number
  /** What went wrong with the last look. */
  trouble?: string | undefined
  hasKeys: boolean
}

export interface FrameLine {
  text: string
  style?: 'bold' | 'dim' | 'red' | 'inverse'
}

interface Column {
  head: string
  width: number
  cell(line: QueueLine): string
}

const rate = (value: number | null): string => (value === null ? NONE : perSecond(value))

const COLUMNS: readonly Column[] = [
  { head: 'waiting', width: 7, cell: ({ report }) => short(report.counts.waiting) },
  { head: 'run', width: 5, cell: ({ report }) => short(report.counts.running) },
  { head: 'dead', width: 5, cell: ({ report }) => short(report.counts.dead) },
  { head: 'in/s', width: 5, cell: ({ arrivals }) => rate(arrivals) },
  { head: 'out/s', width: 5, cell: ({ completions }) => rate(completions) },
  { head: 'fail/s', width: 6, cell: ({ failures }) => rate(failures) },
  { head: 'p50', width: 6, cell: ({ report }) => timeOrNone(report.wait.p50) },
  { head: 'p95', width: 6, cell: ({ report }) => timeOrNone(report.wait.p95) },
  { head: 'oldest', width: 7, cell: ({ report }) => age(report.oldestWaiting) },
  { head: 'busy', width: 9, cell: ({ busy, slots }) => (slots === 0 ? NONE : `${short(busy)}/${short(slots)}`) },
]
/** Only where there is room, from the left on. */
const FURTHER: readonly Column[] = [
  { head: 'workers', width: 7, cell: ({ workers }) => short(workers) },
  { head: 'sched', width: 6, cell: ({ report }) => short(report.counts.scheduled) },
  { head: 'done', width: 6, cell: ({ report }) => short(report.counts.done) },
  { head: 'run p95', width: 7, cell: ({ report }) => timeOrNone(report.run.p95) },
]
const LEAST_NAME = 9

const age = (ms: number | null): string => (ms === null ? NONE : lasting(ms).replaceAll(' ', ''))

export function frameOf(frame: Frame): FrameLine[] {
  const { now, before, columns, rows, sort, skip } = frame
  const lines = sorted(linesOf(now, before), sort)
  const head = headOf(frame, lines)
  const attention = lines.flatMap(({ report }) =>
    attentionTo(report, now.workers).map((one) => plain(attentionText(one))),
  )
  const foot: FrameLine[] = frame.hasKeys ? [{ text: `q quit  s sort (by ${sort})  j k scroll`, style: 'dim' }] : []
  // Two lines of the table at least, then what needs attention.
  const room = Math.max(3, rows - head.length - foot.length)
  const shown = Math.min(lines.length, Math.max(2, room - 1 - Math.min(attention.length + 1, Math.ceil(room / 3))))
  const from = Math.max(0, Math.min(skip, lines.length - shown))
  const used = columnsFor(columns)
  const table = [
    { text: rowOf(columns, used, 'queue', ({ head: text }) => text), style: 'bold' as const },
    ...lines
      .slice(from, from + shown)
      .map((line) => ({ text: rowOf(columns, used, line.queue, ({ cell }) => cell(line)) })),
  ]
  const left = Math.max(0, room - table.length)
  const body = [...head, ...table, ...attentionLines(attention, left)].slice(0, rows - foot.length)
  const blank = Array.from({ length: frame.hasKeys ? rows - foot.length - body.length : 0 }, () => ({ text: '' }))
  return [...body, ...blank, ...foot].map((line) => ({ ...line, text: cut(line.text, columns) }))
}

function headOf({ now, store, clock, minutes, trouble }: Frame, lines: readonly QueueLine[]): FrameLine[] {
  const sum = (figure: (line: QueueLine) => number | null) =>
    lines.reduce((total, line) => total + (figure(line) ?? 0), 0)
  const isKnown = lines.some(({ arrivals }) => arrivals !== null)
  const total = (figure: (line: QueueLine) => number | null) => (isKnown ? perSecond(sum(figure)) : NONE)
  const alive = (now.workers ?? []).filter(({ silent }) => !silent)
  const processes = new Set(alive.map(({ host, pid }) => `${host} ${pid}`)).size
  const silent = (now.workers?.length ?? 0) - alive.length
  const states = (['waiting', 'running', 'scheduled', 'dead'] as const).map(
    (state) => `${state} ${short(sum(({ report }) => report.counts[state]))}`,
  )
  const rates = [
    `in ${total((line) => line.arrivals)}/s`,
    `out ${total((line) => line.completions)}/s`,
    `failed ${total((line) => line.failures)}/s`,
  ]
  const theirs = `${counted(alive.length, 'worker')} in ${counted(processes, 'process', 'processes')}`
  const workers = `${theirs}${silent > 0 ? `, ${silent} silent` : ''}`
  const slots = `${short(sum(({ busy }) => busy))} of ${short(sum(({ slots }) => slots))} slots busy`
  return [
    {
      text: `millpond top   ${store}   ${counted(lines.length, 'queue')}   waits of the last ${minutes} min   ${clock}`,
      style: 'inverse',
    },
    { text: [...states, workers].join('   ') },
    { text: [...rates, slots].join('   ') },
    trouble === undefined ? { text: '' } : { text: plain(trouble), style: 'red' },
  ]
}

function columnsFor(columns: number): Column[] {
  const used = [...COLUMNS]
  const width = () => used.reduce((sum, one) => sum + one.width + 1, 0)
  for (const column of FURTHER) {
    if (width() + column.width + 1 + 2 * LEAST_NAME > columns) break
    used.push(column)
  }
  while (used.length > 1 && width() + LEAST_NAME > columns) used.pop()
  return used
}

function rowOf(columns: number, used: readonly Column[], name: string, cell: (column: Column) => string): string {
  const cells = used.map((column) => cell(column).padStart(column.width)).join(' ')
  const width = Math.max(LEAST_NAME, columns - cells.length - 1)
  return `${cut(plain(name), width).padEnd(width)} ${cells}`
}

function attentionLines(attention: readonly string[], room: number): FrameLine[] {
  if (attention.length === 0 || room < 2) return []
  const shown = attention.slice(0, attention.length > room - 1 ? room - 2 : room - 1)
  const more = attention.length - shown.length
  const lines: FrameLine[] = shown.map((text) => ({ text, style: 'red' }))
  return [{ text: '' }, ...lines, ...(more > 0 ? [{ text: `and ${more} more`, style: 'dim' as const }] : [])]
}
