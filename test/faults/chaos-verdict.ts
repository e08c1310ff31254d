/** What must hold after a chaos, whoever was killed. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { JobState } from '../../src/values/jobs/records.ts'
import { firingId } from '../../src/values/schedules/firing.ts'
import type { ChaosCrew, Try } from './chaos-crew.ts'
import { endsOf, GROUP_RUNNING, idOf, MAIL_GROUPS, ORDERS_RUNNING, TICKS, type Unit } from './chaos-plan.ts'
import { Journal } from './journal.ts'
import { Ledger } from './ledger.ts'
import { assertLittleLeft } from './redis-left.ts'

const LOOK = 1000
const SECOND = 1000
const FINAL: readonly (JobState | undefined)[] = ['done', 'dead', 'cancelled']

export interface ChaosRules {
  /** Codes with which a push may be refused, besides `QueueFull`. */
  refusals: readonly string[]
  /** A fail-over may undo claims, so that jobs start again. Not so unless set. */
  claimsUndone?: boolean
}

/** Where in the ledger each job first starts, last starts and first ends; and how often it started and was to start again. */
interface Runs {
  first: Map<string, number>
  last: Map<string, number>
  end: Map<string, number>
  starts: Map<string, number>
}

function runsOf(path: string): Runs {
  const runs: Runs = { first: new Map(), last: new Map(), end: new Map(), starts: new Map() }
  for (const [at, words] of new Journal(path).lines.entries()) {
    const [kind, , , , id = ''] = words.split(' ')
    if (kind === 'start') {
      if (!runs.first.has(id)) runs.first.set(id, at)
      runs.last.set(id, at)
    }
    if (kind === 'end' && !runs.end.has(id)) runs.end.set(id, at)
    const more = kind === 'start' ? 1 : kind === 'back' ? -1 : 0
    runs.starts.set(id, (runs.starts.get(id) ?? 0) + more)
  }
  return runs
}

/** The ids of a try's own jobs. */
const ownIds = (seed: number, { unit, attempt }: Try, { jobs }: Unit): string[] =>
  jobs.map((_, at) => idOf(seed, unit, attempt, at))

async function statesOf({ store }: ChaosCrew, ids: readonly string[]): Promise<Map<string, JobState>> {
  const states = new Map<string, JobState>()
  for (let at = 0; at < ids.length; at += LOOK) {
    for (const record of await store.operations.find({ ids: ids.slice(at, at + LOOK) }))
      if (record !== null) states.set(record.id, record.state)
  }
  return states
}

/** Asserts that all holds, and tells what was counted. */
export async function judgeChaos(t: TestContext, crew: ChaosCrew, rules: ChaosRules): Promise<void> {
  const { units } = crew
  const { seed, url } = crew.options
  const all = crew.tries().map((each) => ({ each, unit: units[each.unit] as Unit, own: [] as string[] }))
  for (const one of all) one.own = ownIds(seed, one.each, one.unit)
  const states = await statesOf(crew, [...new Set(all.flatMap(({ own, each }) => [...own, ...(each.answer ?? [])]))])
  const runs = runsOf(crew.ledger)
  const faults: Record<'lost' | 'torn' | 'stuck' | 'early' | 'otherwise' | 'refused' | 'again', string[]> = {
    ...{ lost: [], torn: [], stuck: [], early: [], otherwise: [], refused: [], again: [] },
  }

  for (const { each, unit, own } of all) {
    const { answer, code } = each
    const name = `${unit.kind} ${each.unit} ${each.attempt}`
    if (answer !== undefined) {
      for (const id of answer) if (!states.has(id)) faults.lost.push(`${name} ${id}`)
    } else if (code !== undefined && code !== 'QueueFull' && !rules.refusals.includes(code)) {
      faults.refused.push(`${name} ${code}`)
    }
    // A job with a key may be another one's; all others are there, or none.
    const isOwn = (at: number) => unit.jobs[at]?.key === undefined
    const there = own.filter((id) => states.has(id))
    const whole = own.filter((_, at) => isOwn(at))
    const isTorn = there.length > 0 && whole.some((id) => !states.has(id))
    if (isTorn || (code === 'QueueFull' && there.length > 0)) {
      faults.torn.push(`${name}: ${there.length} of ${own.length}`)
    }
    for (const id of there) if (!FINAL.includes(states.get(id))) faults.stuck.push(`${name} ${id}`)
    if (there.length === 0 || unit.kind === 'bulk') continue
    const ids = answer ?? own
    const ends = unit.kind === 'graph' ? endsOf(unit) : []
    for (const [at, { parents }] of unit.jobs.entries()) {
      const id = own[at] ?? ''
      if (ends.length > 0 && states.get(id) !== ends[at]) {
        faults.otherwise.push(`${name} ${id} is ${states.get(id)}, not ${ends[at]}`)
      }
      const startedAt = runs.first.get(id)
      // Which job stands for one with a key is known only from the answer.
      if (startedAt === undefined || (answer === undefined && unit.kind !== 'graph')) continue
      for (const parent of parents.map((place) => ids[place] ?? '')) {
        const state = states.get(parent)
        // One that was cancelled never ran, and the lease of one that is dead may have run out.
        const endedAt =
          runs.end.get(parent) ??
          (state === 'cancelled' ? -1 : state === 'dead' ? (runs.last.get(parent) ?? -1) : Number.POSITIVE_INFINITY)
        if (startedAt < endedAt) faults.early.push(`${name} ${id} before ${parent}`)
      }
    }
  }

  const stats = await crew.store.operations.stats({})
  const lost = stats.reduce((sum, { totals }) => sum + totals.lost, 0)
  const again = all
    .filter(({ unit }) => unit.kind !== 'bulk')
    .flatMap(({ own }) => own)
    .reduce((sum, id) => sum + Math.max(0, (runs.starts.get(id) ?? 0) - 1), 0)
  // A job starts once, and once more for each failure and each lease of it that ran out.
  if (again > lost && rules.claimsUndone !== true) faults.again.push(`${again} starts too many, ${lost} lost leases`)
  const pushed = stats.reduce((sum, { queue, totals }) => sum + (queue === TICKS ? 0 : totals.pushed), 0)

  const orders = new Ledger(crew.ledger, ['orders'], ORDERS_RUNNING).read()
  const mails = new Ledger(crew.ledger, MAIL_GROUPS, GROUP_RUNNING).read()
  const firings = expectedFirings(crew)
  const missing = firings.filter((id) => !runs.end.has(id) && !runs.first.has(id))
  const ticks = await crew.ticks()
  const refusals = Object.groupBy(all, ({ each }) => each.code ?? 'none')
  const figures = {
    ...{ jobs: states.size, units: units.length, tries: all.length, kills: crew.kills },
    ...Object.fromEntries(Object.entries(refusals).map(([code, list]) => [`refused ${code}`, list?.length])),
    ...{ 'lost leases': lost, again, orders: orders.most, 'of a group of mails': mails.most },
    ...{ firings: firings.length, 'firings pushed': ticks, missing: missing.length },
    ...Object.fromEntries(Object.entries(faults).map(([name, list]) => [name, list.length])),
  }
  t.diagnostic(
    `${Object.entries(figures)
      .map(([name, figure]) => `${name} ${figure}`)
      .join(', ')}, seed ${seed}`,
  )

  const some = Object.entries(faults).map(([name, list]) => [name, list.slice(0, 5)])
  const none = Object.keys(faults).map((name) => [name, []])
  assert.deepEqual(Object.fromEntries(some), Object.fromEntries(none), `seed ${seed}`)
  assert.equal(pushed, states.size, 'each job is counted as pushed once')
  assert.ok(orders.most <= ORDERS_RUNNING, `${orders.most} orders at once, seed ${seed}`)
  assert.ok(mails.most <= GROUP_RUNNING, `${mails.most} mails of a group at once, seed ${seed}`)
  assert.deepEqual(missing, [], 'firings without a job')
  assert.equal(ticks, firings.length, 'each firing is pushed once')
  if (crew.store.name === 'redis') await assertLittleLeft(url, [...states.keys(), ...firings])
}

/** The ids of all jobs that the schedules must have pushed: one for each second since they were declared. */
function expectedFirings({ schedules }: ChaosCrew): string[] {
  return schedules.flatMap(({ name, changedAt, nextAt }) => {
    const ids: string[] = []
    let at = Math.floor(changedAt / SECOND) * SECOND + SECOND
    for (; at < (nextAt ?? 0); at += SECOND) ids.push(firingId(name, at).id)
    return ids
  })
}
