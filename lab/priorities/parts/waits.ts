/** How long urgent jobs wait in one scenario. */
import { atMost } from '../../bars.ts'
import { attempts, type Run } from '../../chapter.ts'
import type { Part, Row } from '../../report/model.ts'
import { curveOf, mean, percentiles, quantile } from '../../statistics.ts'
import { hasMillpondOnRabbitmq, hasRabbitmq } from '../rabbitmq.ts'
import { type Outcome, run as runOnce } from '../run.ts'
import { SCENARIOS, type ScenarioName } from '../scenarios.ts'
import { DELAYED } from '../settings.ts'
import { NAMES, PLACES, type VariantName, variant } from '../variants.ts'

/** What a long job takes, in seconds. */
export const LONG = { smoke: 1, usual: 3, full: 20 }

/** In waves, of each store one variant: consumers mostly wait. On RabbitMQ there is one by hand, and one of Millpond. */
function waves(): VariantName[][] {
  const left = new Map<string, VariantName[]>()
  for (const name of NAMES) {
    const { store, plain = false } = variant(name)
    if (store === 'rabbitmq' && !(hasRabbitmq && (plain || hasMillpondOnRabbitmq))) continue
    const place = `${store}, ${plain}`
    left.set(place, [...(left.get(place) ?? []), name])
  }
  const queues = [...left.values()]
  const longest = Math.max(...queues.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => queues.flatMap((names) => names[at] ?? []))
}

export async function waitsOf(run: Run, scenario: ScenarioName): Promise<Part> {
  const { title } = SCENARIOS[scenario]
  const outcomes = new Map<VariantName, Outcome[]>()
  for (const wave of waves()) {
    const found = await attempts(
      run,
      wave,
      (name) => `${variant(name).title}: ${title}`,
      async (name) =>
        runOnce(
          name,
          scenario,
          run.pick(LONG) * 1000,
          await (await run.stage.place(PLACES[variant(name).store])).fresh(),
        ),
      wave.length,
    )
    for (const [name, runs] of found) if (runs.length > 0) outcomes.set(name, runs)
  }
  const ordered = NAMES.flatMap((name) => {
    const runs = outcomes.get(name)
    return runs === undefined ? [] : [{ name, runs }]
  })
  return {
    id: scenario,
    title: `${title.charAt(0).toUpperCase()}${title.slice(1)}`,
    about: ABOUT[scenario],
    columns: [
      { key: 'urgent', label: 'urgent jobs', unit: 'count' },
      { key: 'mean', label: 'mean wait', unit: 'ms', better: 'less' },
      { key: 'p95', label: 'p95', unit: 'ms', better: 'less' },
      { key: 'worst', label: 'worst', unit: 'ms', better: 'less' },
      { key: 'delayed', label: `waited > ${DELAYED} ms`, unit: 'share', better: 'less' },
      { key: 'longMean', label: 'mean wait of long jobs', unit: 'ms', better: 'less' },
    ],
    rows: ordered.map(({ name, runs }) => rowFor(name, runs)),
    charts: [
      { kind: 'bars', title: 'p95 of urgent waits', column: 'p95', log: true },
      {
        kind: 'lines',
        title: 'Waits of urgent jobs by percentile',
        summary: 'Waits of urgent jobs of each variant, from the shortest to the longest.',
        x: { label: 'percentile of urgent jobs', unit: 'percentile', log: true },
        y: { label: 'ms', unit: 'ms', log: true },
        series: ordered.map(({ name, runs }) => ({
          title: variant(name).title,
          kind: kindOf(name),
          points: percentiles(curveOf(runs.flatMap(({ waits }) => waits))),
        })),
      },
    ],
    notes: scenario === 'idle' ? [] : ['A lane keeps half of the slots from long jobs, which wait longer for it.'],
  }
}

const ABOUT: Record<ScenarioName, string> = {
  idle: 'A long job runs, the other consumers are idle, and urgent jobs come. None has a reason to wait; one that was delivered to the busy consumer waits all the same.',
  full: 'Long jobs hold every slot that they get, as many again wait, and urgent jobs come. Priorities alone let an urgent job start when the next slot is free; a lane keeps one free.',
  mixed:
    'Long jobs come at random moments, on average as many as take 40 % of all slots, beside a steady flow of urgent ones: an ordinary day.',
}

const kindOf = (name: VariantName): Row['kind'] => (variant(name).plain ? 'plain' : 'ours')

function rowFor(name: VariantName, runs: readonly Outcome[]): Row {
  const waits = runs.flatMap((each) => each.waits)
  const long = runs.flatMap((each) => each.longWaits)
  const { title, within } = variant(name)
  const p95 = quantile(waits, 0.95)
  return {
    variant: name,
    title,
    kind: kindOf(name),
    figures: {
      urgent: waits.length,
      mean: mean(waits),
      p95,
      worst: Math.max(...waits),
      delayed: waits.filter((wait) => wait > DELAYED).length / waits.length,
      ...(long.length === 0 ? {} : { longMean: mean(long) }),
    },
    bars: within === undefined ? [] : [atMost(p95, within, ' ms p95')],
  }
}
