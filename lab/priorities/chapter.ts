/** E5 of the report: long jobs must not hold up short ones. */
import type { ChapterPlan } from '../chapter.ts'
import { type Finding, numberIn, type Part, partOf, type Row, rowOf } from '../report/model.ts'
import { shown } from '../report/units.ts'
import { isolation } from './parts/isolation.ts'
import { moving } from './parts/moving.ts'
import { replicaRace } from './parts/race.ts'
import { LONG, waitsOf } from './parts/waits.ts'
import { SCENARIOS, type ScenarioName } from './scenarios.ts'
import { DELAYED, PROCESSES, SHORT, SLOTS } from './settings.ts'

export const priorities: ChapterPlan = {
  id: 'E5',
  title: 'Long jobs beside urgent ones',
  short: 'Priorities',
  question:
    'The same consumers take long parsing jobs and short jobs that a user waits for. How long does an urgent job wait?',
  takes: { smoke: 60, usual: 140, full: 1100 },
  published: [
    {
      title: 'Published: waits of high-priority messages',
      head: ['', 'RabbitMQ', 'PostgreSQL'],
      rows: [
        ['mean', '19 s', '0 s'],
        ['95th percentile', '126 s', '15 s'],
        ['worst', 'over 60 min', 'a few minutes'],
        ['delayed', '64 %', '–'],
      ],
      note: 'Left unsolved there: consumers looked for a record on a read replica before it had arrived, and a report outgrew the memory of its pod.',
    },
  ],
  setUp: ({ pick }) => [
    `${PROCESSES} consumer processes with ${SLOTS} slots each, which take both kinds of jobs. Long jobs take ${pick(LONG)} s, urgent ones ${SHORT} ms.`,
    'The wait is from the call of push in one process to the start of the handler in another.',
    'With a lane, one of the two slots of each process is kept for urgent jobs.',
    'All have a message on the disk before they confirm it: PostgreSQL as it comes, Redis with appendfsync always, RabbitMQ with a durable queue and persistent messages.',
    'Variants on different stores run at the same time: consumers mostly wait, and each store has its own server.',
  ],
  async *measure(run) {
    for (const scenario of Object.keys(SCENARIOS) as ScenarioName[]) yield await waitsOf(run, scenario)
    yield await replicaRace(run)
    yield await isolation(run)
    yield await moving(run)
  },
  findings,
}

function findings(parts: readonly Part[]): Finding[] {
  const found: Finding[] = []
  const mixed = partOf(parts, 'mixed')
  const rabbitmq = rowOf(mixed, 'rabbitmq-early')
  const p95 = numberIn(rabbitmq, 'p95')
  if (p95 !== undefined) {
    found.push({
      verdict: 'falls',
      figure: shown(p95, 'ms'),
      text: `is the 95th percentile of urgent waits on RabbitMQ with prefetch, ${shown(numberIn(rabbitmq, 'delayed'), 'share')} of them over ${DELAYED} ms: messages are parked behind a long job while other consumers idle.`,
      part: 'mixed',
    })
  }
  const lanes = parts.flatMap((part) => part.rows.filter(({ variant }) => /^(postgres|redis)-lane$/.test(variant)))
  const worst = Math.max(...lanes.map((row: Row) => numberIn(row, 'p95') ?? Number.NaN))
  if (lanes.length > 0) {
    found.push({
      verdict: worst <= DELAYED ? 'holds' : 'missed',
      figure: shown(worst, 'ms'),
      text: `is the highest 95th percentile with a lane, on PostgreSQL and Redis, in all ${parts.filter(({ rows }) => rows.some(({ variant }) => variant.endsWith('-lane'))).length} scenarios.`,
      part: 'full',
    })
  }
  found.push(...overRabbitmq(parts), ...theRest(parts))
  return found
}

/** Millpond over RabbitMQ beside RabbitMQ by hand, wherever long jobs come in the way. */
function overRabbitmq(parts: readonly Part[]): Finding[] {
  const pairs = parts.flatMap((part) => {
    const ours = rowOf(part, 'rabbitmq-lane')
    const plain = ['rabbitmq', 'rabbitmq-early'].flatMap((name) => rowOf(part, name) ?? [])
    return ours === undefined || part.id === 'idle' ? [] : plain.map((each) => ({ ours, plain: each }))
  })
  if (pairs.length === 0) return []
  const figure = (row: Row, key: string): number => numberIn(row, key) ?? Number.NaN
  const isBetter = pairs.every(({ ours, plain }) =>
    ['mean', 'p95'].every((key) => figure(ours, key) < figure(plain, key)),
  )
  const worst = Math.max(...pairs.map(({ ours }) => figure(ours, 'p95')))
  const least = Math.min(...pairs.map(({ plain }) => figure(plain, 'p95')))
  return [
    {
      verdict: isBetter ? 'holds' : 'missed',
      figure: shown(worst, 'ms'),
      text: `is the highest 95th percentile of urgent waits with Millpond over RabbitMQ and a lane; by hand it is ${shown(least, 'ms')} at least.`,
      part: 'mixed',
    },
  ]
}

/** What the write-up ran into. */
function theRest(parts: readonly Part[]): Finding[] {
  const found: Finding[] = []
  const race = partOf(parts, 'race')
  const worstRace = race?.rows.filter(({ kind }) => kind === 'plain').map((row) => numberIn(row, 'missed') ?? 0) ?? []
  if (worstRace.length > 0) {
    found.push({
      verdict: 'falls',
      figure: `${shown(Math.max(...worstRace), 'count')} records not found`,
      text: 'by handlers that read a streaming replica: the job is quicker than the replication.',
      part: 'race',
    })
  }
  const aware = race?.rows.filter(({ kind }) => kind === 'ours') ?? []
  if (aware.length > 0) {
    const missed = aware.reduce((sum, row) => sum + (numberIn(row, 'missed') ?? 0), 0)
    found.push({
      verdict: missed === 0 ? 'holds' : 'missed',
      figure: `${shown(missed, 'count')} not found`,
      text: `in ${aware.reduce((sum, row) => sum + (numberIn(row, 'jobs') ?? 0), 0).toLocaleString('en')} jobs with the option replica, on the same replica.`,
      part: 'race',
    })
  }
  const isolated = partOf(parts, 'isolation')
  const crashes = numberIn(rowOf(isolated, 'plain'), 'crashes')
  if (crashes !== undefined && crashes > 0) {
    found.push({
      verdict: 'falls',
      figure: `${shown(crashes, 'count')} consumers died`,
      text: 'of one report that outgrew its memory, and each took the jobs beside it along.',
      part: 'isolation',
    })
  }
  const safe = rowOf(isolated, 'isolated')
  if (safe !== undefined) {
    const [died, others, done, twice] = ['crashes', 'others', 'done', 'twice'].map(
      (key) => numberIn(safe, key) ?? Number.NaN,
    )
    found.push({
      verdict: died === 0 && done === others && twice === 0 ? 'holds' : 'missed',
      figure: `${shown(died, 'count')} died`,
      text: `with isolate: the report alone failed (${safe.figures.reason}), and ${done?.toLocaleString('en')} others were done, ${shown(twice, 'count')} of them twice.`,
      part: 'isolation',
    })
  }
  const moved = partOf(parts, 'moving')?.rows ?? []
  const [first] = moved
  if (first !== undefined) {
    const sum = (key: string) => moved.reduce((all, row) => all + (numberIn(row, key) ?? 0), 0)
    found.push({
      verdict: sum('lost') === 0 && sum('twice') === 0 ? 'holds' : 'missed',
      figure: `${shown(sum('lost'), 'count')} lost, ${shown(sum('twice'), 'count')} twice`,
      text: `when ${sum('moved').toLocaleString('en')} jobs were moved to PostgreSQL while producers and workers went on.`,
      part: 'moving',
    })
  }
  return found
}
