/** The published surge, on programs that drown in it, and on programs that are killed in the middle. */
import { atMost, type Bar } from '../../bars.ts'
import { attempts, type Run } from '../../chapter.ts'
import { freshFolder } from '../../data.ts'
import type { Column, LineChart, Part, Row } from '../../report/model.ts'
import { shown } from '../../report/units.ts'
import { median, percentiles } from '../../statistics.ts'
import { CLIENT_TIMEOUT, LEASE, MAIL_TAKES } from '../settings.ts'
import { buildGo, preparePython } from './languages.ts'
import { type Outcome, run as runOnce } from './run.ts'
import { NAMES, type Surge, type SurgeName, surge } from './variants.ts'

/** Of the load, in seconds. The usual run has the published size as well: most of its time is spent waiting. */
export const SECONDS = { smoke: 3, usual: 30, full: 30 }
const SIGNAL_AT = 0.6
/** With a kill in the middle. Only the published success rates need the published size. */
export const KILLED_SECONDS = { smoke: 3, usual: 15, full: 30 }
/** Variants that run at the same time. Those that wait for mails leave the machine idle; durable ones share its disk. */
const DROWNED_AT_ONCE = 10
const SPILLED_AT_ONCE = 4
const KILLED_AT_ONCE = { smoke: 2, usual: 2, full: 1 }
const SMOKE: readonly SurgeName[] = ['go-plain', 'array', 'sqlite', 'python-store', 'spill-0', 'spill-1000']
const WITHIN = 10

const COLUMNS: Column[] = [
  { key: 'success', label: 'answered in time', unit: 'share', better: 'more' },
  { key: 'mean', label: 'mean of all', unit: 'ms', better: 'less' },
  { key: 'p50', label: 'p50', unit: 'ms', better: 'less' },
  { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
  { key: 'p99', label: 'p99', unit: 'ms', better: 'less' },
  { key: 'accepted', label: 'accepted', unit: 'count' },
  { key: 'mails', label: 'mails out', unit: 'count' },
  { key: 'lost', label: 'mails lost', unit: 'count', better: 'less' },
  { key: 'twice', label: 'twice', unit: 'count', better: 'less' },
  { key: 'memory', label: 'server memory', unit: 'bytes', better: 'less' },
]

/** Prepares Go and Python. What is not there is told, and its variants are left out. */
export async function languages(run: Run): Promise<ReadonlySet<string>> {
  const ready = new Set(['node'])
  const prepare = async (language: string, name: string, how: () => Promise<string>) => {
    run.tell(`preparing ${name}`)
    try {
      run.uses(name, await how())
      ready.add(language)
    } catch (error) {
      run.fail(`${name}: its programs are left out`, error)
    }
  }
  await prepare('go', 'Go', buildGo)
  await prepare('python', 'Python', preparePython)
  return ready
}

const languageOf = (name: SurgeName): string => /^(go|python)/.exec(name)?.[0] ?? 'node'

async function outcomesOf(
  run: Run,
  ready: ReadonlySet<string>,
  signal: Surge['signal'],
  seconds: number,
  atOnce: number,
): Promise<Map<SurgeName, Outcome[]>> {
  const names = NAMES.filter(
    (name) =>
      surge(name).signal === signal && ready.has(languageOf(name)) && (run.size !== 'smoke' || SMOKE.includes(name)),
  )
  const outcomes = await attempts(
    run,
    spread(names, atOnce),
    (name) => surge(name).title,
    (name) => runOnce(surge(name), freshFolder(), { seconds, signalAt: seconds * SIGNAL_AT }),
    atOnce,
  )
  return new Map(names.flatMap((name) => (outcomes.has(name) ? [[name, outcomes.get(name) ?? []]] : [])))
}

/** Neighbours are alike, and so the plain ones do not run beside each other, nor the durable ones. */
function spread<Name>(names: readonly Name[], atOnce: number): Name[] {
  const waves = Math.ceil(names.length / atOnce)
  return Array.from({ length: waves }, (_, wave) => names.filter((_, at) => at % waves === wave)).flat()
}

export async function drowned(run: Run, ready: ReadonlySet<string>): Promise<Part> {
  const outcomes = await outcomesOf(run, ready, undefined, run.pick(SECONDS), DROWNED_AT_ONCE)
  return {
    id: 'drowned',
    title: 'The plain programs, without a signal',
    about: `${run.pick(SECONDS) * 100} requests in ${run.pick(SECONDS)} s. Clients give up after ${CLIENT_TIMEOUT / 1000} s. A queue of 3,000 answers everyone at once and only moves the waiting to where nobody sees it: with one worker its mails take hours.`,
    columns: COLUMNS.filter(({ key }) => !['lost', 'twice'].includes(key)),
    rows: rowsOf(outcomes),
    charts: [
      { kind: 'bars', title: 'Answered in time', column: 'success' },
      { kind: 'bars', title: 'Mean latency of all requests', column: 'mean', log: true },
    ],
    notes: [
      'Each variant has its own server and its own load generator; they run at the same time, since they mostly wait.',
      arithmetic(run.pick(SECONDS) * 100),
    ],
  }
}

export async function killed(run: Run, ready: ReadonlySet<string>): Promise<Part> {
  const atOnce = run.pick(KILLED_AT_ONCE)
  const outcomes = await outcomesOf(run, ready, 'SIGKILL', run.pick(KILLED_SECONDS), atOnce)
  const at = signalAt(run.pick(KILLED_SECONDS))
  const latency: LineChart = {
    kind: 'lines',
    title: 'Latency by percentile',
    summary: 'Of the accepted requests of each variant.',
    x: { label: 'percentile of requests', unit: 'percentile', log: true },
    y: { label: 'ms', unit: 'ms', log: true },
    series: [...outcomes].flatMap(([name, [first]]) =>
      first === undefined
        ? []
        : [{ title: surge(name).title, kind: surge(name).kind, points: percentiles(first.curve) }],
    ),
  }
  return {
    id: 'killed',
    title: 'kill -9 of server and worker in the middle',
    about: `The same surge for ${run.pick(KILLED_SECONDS)} s on queues with 1,000 workers. After ${at} s the server and the worker get a SIGKILL and are started again. Requests that came meanwhile failed, so nobody is misled; a mail is lost when its reader was told yes.`,
    columns: COLUMNS,
    rows: rowsOf(outcomes),
    charts: [backlogOf(outcomes, at, 'kill -9 of server and worker'), latency],
    notes: [
      atOnce === 1
        ? 'One variant after the other.'
        : `${atOnce} variants run at the same time, each with its own server and load generator, on the same disk.`,
      `The lease is ${LEASE / 1000} s here, 30 s unless set: so long the mails of a killed worker wait before another one takes them.`,
      'Twice: mails that the killed worker had sent without having said so. At least once is the promise.',
      'Every address, and every job of Millpond, is on the disk before the answer.',
    ],
  }
}

const signalAt = (seconds: number): number => Math.round(seconds * SIGNAL_AT * 10) / 10

const backlogOf = (outcomes: ReadonlyMap<SurgeName, readonly Outcome[]>, at: number, mark: string): LineChart => ({
  kind: 'lines',
  title: 'Accepted mails that are not out',
  summary:
    'By seconds since the first request. A line that does not come back to zero shows mails that nobody will send.',
  x: { label: 'seconds since the first request', unit: 's' },
  y: { label: 'mails', unit: 'count' },
  series: [...outcomes].flatMap(([name, [first]]) =>
    first === undefined ? [] : [{ title: surge(name).title, kind: surge(name).kind, points: first.backlog }],
  ),
  marks: [{ x: at, label: mark }],
})

export async function spilled(run: Run, ready: ReadonlySet<string>): Promise<Part> {
  const outcomes = await outcomesOf(run, ready, 'SIGTERM', run.pick(SECONDS), SPILLED_AT_ONCE)
  return {
    id: 'spilled',
    title: 'A bounded memory queue, and SIGTERM in the middle',
    about: `The same surge on queues in the memory of the server, with one worker, so that they fill. After ${signalAt(run.pick(SECONDS))} s the server gets a SIGTERM, as at every deployment, and the next process starts with 1,000 workers. With spill, what is over the queue’s size goes to SQLite, and SIGTERM hands over the rest.`,
    columns: COLUMNS,
    rows: rowsOf(outcomes),
    charts: [backlogOf(outcomes, signalAt(run.pick(SECONDS)), 'SIGTERM')],
    notes: [
      'Until the old process has sent the mail that is under way, at most 5 s, nobody listens on the port, and requests fail. Two processes behind nginx would take turns.',
      'A queue of 0 has a size of 1, the least that there is: everything else is spilled.',
      'A crash, unlike SIGTERM, loses what was in memory alone: the row “with spill” of the part before shows how much.',
    ],
  }
}

function arithmetic(mails: number): string {
  const alone = (mails * MAIL_TAKES) / 1000
  return `The arithmetic: ${mails.toLocaleString('en')} mails × ${MAIL_TAKES / 1000} s ÷ 1 worker = ${shown(alone, 's')}; ÷ 1,000 workers = ${shown(alone / 1000, 's')}.`
}

function rowsOf(outcomes: ReadonlyMap<SurgeName, readonly Outcome[]>): Row[] {
  return [...outcomes].filter(([, runs]) => runs.length > 0).map(([name, runs]) => rowFor(name, runs))
}

function rowFor(name: SurgeName, runs: readonly Outcome[]): Row {
  const { title, kind, published, promises, awaited } = surge(name)
  const middle = (of: (each: Outcome) => number | null) => {
    const values = runs.flatMap((each) => of(each) ?? [])
    return values.length === 0 ? undefined : median(values)
  }
  const unsent = Math.max(...runs.map((each) => each.unsent))
  const found = {
    success: middle((each) => each.accepted / each.requests),
    mean: middle((each) => each.mean),
    p50: middle((each) => each.p50),
    p95: middle((each) => each.p95),
    p99: middle((each) => each.p99),
    accepted: middle((each) => each.accepted),
    mails: middle((each) => each.mails),
    lost: awaited ? unsent : undefined,
    twice: awaited ? Math.max(...runs.map((each) => each.twice)) : undefined,
    memory: middle((each) => (Number.isFinite(each.memory) ? each.memory : null)),
  }
  const figures: Row['figures'] = {}
  for (const [key, value] of Object.entries(found)) if (value !== undefined) figures[key] = value
  const bars: Bar[] = []
  if (promises) bars.push(atMost(unsent, 0, ' lost'), atMost(found.p99 ?? Number.NaN, WITHIN, ' ms p99'))
  return { variant: name, title, kind, figures, bars, ...(published === undefined ? {} : { published }) }
}
