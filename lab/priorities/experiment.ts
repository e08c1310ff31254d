/** Experiment E5: long jobs must not hold up short ones. */
import { atMost, compact } from '../bars.ts'
import type { Experiment, Row, Table } from '../experiment.ts'
import { positive, some, whole } from '../flags.ts'
import { mean, quantile } from '../statistics.ts'
import { inTurn } from '../turns.ts'
import { hasMillpondOnRabbitmq, hasRabbitmq } from './rabbitmq.ts'
import { type Outcome, run } from './run.ts'
import { SCENARIOS, type ScenarioName } from './scenarios.ts'
import { DELAYED, PROCESSES, SHORT, SLOTS } from './settings.ts'
import { NAMES, PLACES, type VariantName, variant } from './variants.ts'

/** RabbitMQ stands beside the others where it is installed. */
const names = NAMES.filter((name) => {
  const { store, plain } = variant(name)
  return store !== 'rabbitmq' || (hasRabbitmq && (plain || hasMillpondOnRabbitmq))
})
const scenarios = Object.keys(SCENARIOS) as ScenarioName[]
const flags = {
  only: some(names),
  scenarios: some(scenarios),
  runs: whole('of each variant in each scenario, on fresh servers', '1'),
  long: positive('seconds that a long job takes', '20', '2'),
}

export const priorities: Experiment<typeof flags> = {
  id: 'E5',
  flags,
  about: ({ long, runs }) =>
    `Long jobs take ${long} s, urgent ones ${SHORT} ms; ${PROCESSES} consumers with ${SLOTS} slots each.
The wait of an urgent job is from the call of push in one process to the start of its handler in another; ${runs} run(s), variants in turn.`,
  async *measure({ only, scenarios: played, runs, long }, stage) {
    for (const scenario of played) {
      const perform = async (name: VariantName) => {
        const place = await stage.place(PLACES[variant(name).store])
        return run(name, scenario, long * 1000, await place.fresh())
      }
      yield tableOf(scenario, await inTurn(only, runs, perform, (name) => `${name}, ${SCENARIOS[scenario].title}`))
    }
  },
}

const HEAD = [...['', 'long jobs that run', 'urgent jobs', 'mean ms', 'p95 ms', 'worst ms'], `waited > ${DELAYED} ms`]

function tableOf(scenario: ScenarioName, outcomes: ReadonlyMap<VariantName, readonly Outcome[]>): Table {
  const rows = [...outcomes].map(([name, runs]): Row => {
    const { title, within } = variant(name)
    const waits = runs.flatMap((each) => each.waits)
    const p95 = quantile(waits, 0.95)
    const delayed = waits.filter((wait) => wait > DELAYED).length / waits.length
    const cells = [
      title,
      [...new Set(runs.map(({ held }) => held))].join(', '),
      compact(waits.length),
      compact(mean(waits)),
      `**${compact(p95)}**`,
      compact(Math.max(...waits)),
      `${(delayed * 100).toFixed(1)} %`,
    ]
    const bars = within === undefined ? [] : [atMost(p95, within, ' ms p95')]
    return { cells, bars, figures: { variant: name, scenario, runs } }
  })
  return { title: SCENARIOS[scenario].title, head: HEAD, rows }
}
