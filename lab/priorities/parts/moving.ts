/** A live move to another store in the middle of the load. */
import { atMost } from '../../bars.ts'
import { attempt, type Run } from '../../chapter.ts'
import type { Chart, Part, Row } from '../../report/model.ts'
import { type Outcome, run as runOnce } from '../live-move.ts'
import { hasMillpondOnRabbitmq, hasRabbitmq } from '../rabbitmq.ts'
import { PLACES } from '../variants.ts'

const BACKLOG = { smoke: 1000, usual: 10_000, full: 100_000 }
const RATE = 500

const SOURCES = [
  { store: 'rabbitmq', title: 'RabbitMQ to PostgreSQL' },
  { store: 'redis', title: 'Redis to PostgreSQL' },
] as const

export async function moving(run: Run): Promise<Part> {
  const backlog = run.pick(BACKLOG)
  const rows: Row[] = []
  const charts: Chart[] = []
  for (const { store, title } of SOURCES) {
    if (store === 'rabbitmq' && !(hasRabbitmq && hasMillpondOnRabbitmq)) continue
    const outcome = await attempt(run, `a live move, ${title}`, async () => {
      const [source, target] = [await run.stage.place(PLACES[store]), await run.stage.place('postgres')]
      return runOnce(await source.fresh(), await target.fresh(), backlog, RATE)
    })
    if (outcome === undefined) continue
    rows.push(rowFor(store, title, outcome))
    charts.push(chartOf(title, outcome))
  }
  return {
    id: 'moving',
    title: 'A live move to another store',
    about: `${backlog.toLocaleString('en')} jobs wait, a producer adds ${RATE} a second, and workers run. Workers start on the target, then move({ follow: true }) carries the jobs, then the producer is switched. Nothing is stopped.`,
    columns: [
      { key: 'jobs', label: 'jobs', unit: 'count' },
      { key: 'moved', label: 'moved', unit: 'count' },
      { key: 'lost', label: 'lost', unit: 'count', better: 'less' },
      { key: 'twice', label: 'run twice', unit: 'count', better: 'less' },
      { key: 'rate', label: 'moved/s', unit: 'count', better: 'more' },
      { key: 'pause', label: 'longest pause', unit: 'ms', better: 'less' },
    ],
    rows,
    charts,
    notes: [
      'Producer, workers and move share one process here, and so the rate is not the most that a move can do.',
      'The longest pause is the longest time in which no job was done on either store.',
    ],
  }
}

function rowFor(store: string, title: string, { jobs, moved, lost, twice, rate, pause }: Outcome): Row {
  return {
    variant: store,
    title,
    kind: 'ours',
    figures: { jobs, moved, lost, twice, rate, pause },
    bars: [atMost(lost, 0, ' lost'), atMost(twice, 0, ' twice')],
  }
}

const chartOf = (title: string, { done, began, over }: Outcome): Chart => ({
  kind: 'lines',
  title: `Jobs done, ${title}`,
  summary: 'Jobs done per second on the source and on the target. The target takes over while the source is emptied.',
  x: { label: 'seconds since the start', unit: 's' },
  y: { label: 'jobs/s', unit: 'count' },
  series: [
    { title: 'on the source', kind: 'plain', points: done.source },
    { title: 'on the target', kind: 'ours', points: done.target },
  ],
  marks: [
    { x: began, label: 'the move begins' },
    { x: over, label: 'the last job is moved' },
  ],
})
