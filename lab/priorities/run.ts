/** One variant in one scenario: fresh consumers on an empty server, and how long each urgent job waited. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../child.ts'
import { machineTime } from '../clock.ts'
import { isTold, type Message, type Run } from './messages.ts'
import { SCENARIOS, type Scenario, type ScenarioName } from './scenarios.ts'
import { GAP, LONG_PRIORITY, PROCESSES, URGENT_PRIORITY } from './settings.ts'
import { type VariantName, variant } from './variants.ts'

const CONSUMER = new URL('consumer.ts', import.meta.url)
/** Urgent jobs before the others: connections and code are new to them, and they are not counted. */
const WARMING = 10
const POLL = 20
/** Until nothing more is started: the long jobs have taken the slots that they get, in ms. */
const SETTLED = 500

export interface Outcome {
  /** From the call of push to the start of the handler, of each urgent job, in ms. */
  waits: number[]
  /** Long jobs that ran when the first urgent one came. */
  held: number
  /** The same wait of the long jobs that have started, in ms. */
  longWaits: number[]
}

/** @param long how long a long job takes, in ms */
export async function run(name: VariantName, scenario: ScenarioName, long: number, url: string): Promise<Outcome> {
  const { longs, lasts, stream }: Scenario = SCENARIOS[scenario]
  const producer = await (await variant(name).transport()).produce(url)
  const consumers = await Promise.all(
    Array.from({ length: PROCESSES }, () => Child.start(CONSUMER, [name, url, String(long)])),
  )
  const push = (kind: Message['kind']) =>
    producer.push({ kind, pushed: machineTime() }, kind === 'long' ? LONG_PRIORITY : URGENT_PRIORITY)
  const started = async (kind: Message['kind']): Promise<Run[]> => {
    const told = await Promise.all(consumers.map((consumer) => consumer.tell(isTold)))
    return told.flatMap(({ runs }) => runs).filter((each) => each.kind === kind)
  }
  /** Pushes urgent jobs while `more`, and resolves when all that were ever pushed have started. */
  let pushed = 0
  const urge = async (more: () => boolean): Promise<void> => {
    for (; more(); pushed++) {
      await push('urgent')
      await sleep(GAP.least + Math.random() * (GAP.most - GAP.least))
    }
    while ((await started('urgent')).length < pushed) await sleep(POLL)
  }
  try {
    await urge(() => pushed < WARMING)
    for (let n = 0; n < longs; n++) await push('long')
    const held = longs === 0 ? 0 : await settled(async () => (await started('long')).length)
    const began = machineTime()
    const goesOn = () => machineTime() < began + lasts * long
    const flow = async () => {
      if (stream === undefined) return
      for (; goesOn(); await sleep(Math.min(exponential(long / stream), 2 * long))) await push('long')
    }
    await Promise.all([urge(goesOn), flow()])
    const waits = (runs: readonly Run[]) => runs.map((each) => each.started - each.pushed)
    const urgent = (await started('urgent')).filter((each) => each.pushed >= began)
    return { waits: waits(urgent), held, longWaits: waits(await started('long')) }
  } finally {
    await producer.close()
    await Promise.all(consumers.map((consumer) => consumer.stop()))
  }
}

/** As independent clients come. */
const exponential = (mean: number): number => -Math.log(1 - Math.random()) * mean

/** Resolves to the number once it is above 0 and has not changed for a while. */
async function settled(count: () => Promise<number>): Promise<number> {
  for (let before = 0; ; ) {
    const now = await count()
    if (now > 0 && now === before) return now
    before = now
    await sleep(SETTLED)
  }
}
