/** An experiment has flags and yields tables of rows. `play` runs one from the command line, prints Markdown and writes the figures. */
import { writeFileSync } from 'node:fs'
import { type Bar, verdicts } from './bars.ts'
import { clean } from './data.ts'
import { type Flags, type Options, optionsFrom } from './flags.ts'
import { generator } from './load/load.ts'
import { type Facts, facts } from './machine.ts'
import { type Place, placeOf, type StoreName } from './places.ts'
import { failures, tell } from './progress.ts'

export interface Row {
  cells: readonly string[]
  bars: readonly Bar[]
  /** The figures behind the cells, for programs. */
  figures: unknown
}

export interface Table {
  title?: string
  head: readonly string[]
  /** Heads of columns that hold text, besides the first. */
  text?: readonly string[]
  rows: readonly Row[]
  notes?: readonly string[]
}

export interface Stage {
  /** Started when it is first asked for, and ended with the run. */
  place(store: StoreName): Promise<Place>
}

export interface Experiment<Taken extends Flags> {
  /** Such as E1. */
  id: string
  flags: Taken
  /** Says in the head of the report what is measured and how. `machine` has the versions of the rivals. */
  about(options: Options<Taken>, machine: Facts): string
  measure(options: Options<Taken>, stage: Stage): AsyncGenerator<Table, void>
}

/** The stores of a run, each started when an experiment first asks for it. */
export class Servers implements Stage {
  readonly #places = new Map<StoreName, Promise<Place>>()

  place(store: StoreName): Promise<Place> {
    const place = this.#places.get(store) ?? placeOf(store)
    this.#places.set(store, place)
    return place
  }

  async abouts(): Promise<string[]> {
    return (await Promise.all(this.#places.values())).map(({ about }) => about)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#places.values()].map(async (place) => (await place).stop()))
  }
}

/** Exits in good order: the guard of the servers ends them then, and the children of a run end with their parent. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', clean)
}

/** Plays the experiment from the command line, and ends the process. */
export async function play<Taken extends Flags>(
  program: string,
  experiment: Experiment<Taken>,
  args: string[],
): Promise<never> {
  const options = optionsFrom(program, experiment.flags, args)
  exitOnSignals()
  const machine = facts()
  const servers = new Servers()
  const tables: Table[] = []
  console.log(`${experiment.about(options, machine)}
Node ${machine.node}, SQLite ${machine.sqlite}, ${machine.system}, ${machine.cores} cores of ${machine.cpu}, ${machine.memory}, load ${machine.load.toFixed(1)} before the run
${machine.filesystem}, one fdatasync ${machine.fdatasync.toFixed(0)} µs`)
  try {
    for await (const table of experiment.measure(options, servers)) {
      tell('')
      if (tables.length === 0) for (const about of await servers.abouts()) console.log(about)
      tables.push(table)
      console.log(markdown(table))
    }
  } finally {
    await servers.stop()
  }
  const bars = tables.flatMap(({ rows }) => rows.flatMap((row) => row.bars))
  console.log(`\n${bars.filter(({ cleared }) => cleared).length} of ${bars.length} bars cleared.`)
  if (options.json !== undefined) {
    const servings = await servers.abouts()
    const head = { experiment: experiment.id, at: new Date().toISOString(), machine: { ...machine, generator } }
    writeFileSync(
      options.json,
      `${JSON.stringify({ ...head, servers: servings, options, tables, failures }, null, 2)}\n`,
    )
  }
  process.exit()
}

/** Figures are set to the right, and columns are as wide on a terminal as in a page. */
export function markdown({ title, head, text = [], rows, notes = [] }: Table): string {
  const words = rows.map(({ bars }) => verdicts(bars))
  const hasBars = words.some((each) => each !== '')
  const heads = [...head, ...(hasBars ? ['bars'] : [])]
  const isText = heads.map((name, at) => at === 0 || [...text, '', 'bars'].includes(name))
  const lines = [heads, ...rows.map(({ cells }, at) => [...cells, ...(hasBars ? [words[at] ?? ''] : [])])]
  const widths = heads.map((_, at) => Math.max(3, ...lines.map((cells) => (cells[at] ?? '').length)))
  const rule = widths.map((width, at) => (isText[at] ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const padded = lines.map((cells) =>
    cells.map((cell, at) => (isText[at] ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))),
  )
  padded.splice(1, 0, rule)
  const table = rows.length === 0 ? [] : padded.map((cells) => `| ${cells.join(' | ')} |`)
  const above = title === undefined ? [''] : [`\n### ${title}\n`]
  return [...above, ...table, ...(notes.length > 0 ? [''] : []), ...notes.map((note) => `- ${note}`)].join('\n')
}
