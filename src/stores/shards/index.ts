/**
 * Several stores of one kind as one store: contract/shards.md. A queue is in one of them, and an operation about it goes there alone. One
 * about jobs by id goes to all: the store that knows the job answers. What is about all queues is merged.
 *
 * A store that is away harms only its queues. What was asked of all then rejects, unless the others have answered for it.
 */
import type { Operations, Store, StoreTransactions } from '../../store.ts'
import { MillpondError, storeError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { checkMark, MARK } from './mark.ts'
import { Member } from './member.ts'
import { Members } from './members.ts'
import { routeOf } from './route.ts'

/** @param wrap is laid around each store @throws ShardMismatch, and as `open` */
export async function openShards(
  urls: readonly unknown[],
  open: (url: unknown) => Promise<Store>,
  wrap: (store: Store) => Store,
): Promise<Store> {
  const count = urls.length
  const route = routeOf(count)
  const opener = (url: unknown, shard: number) => async () => {
    const store = await open(url)
    try {
      await checkMark(store, shard, count, route)
      return wrap(store)
    } catch (error) {
      await store.close()
      throw error
    }
  }
  const memberOf = (url: unknown, shard: number) => new Member(`shard ${shard + 1} of ${count}`, opener(url, shard))
  const members = new Members(urls.map(memberOf), route)
  const { name, capabilities, transactions } = await members.open()
  return {
    name,
    capabilities: { ...capabilities, replicas: false },
    operations: operationsOf(members),
    ...(transactions && { transactions: transactionsOf(members, transactions.takesSettings) }),
    shards: { count, of: route },
    // One that is away delays only its own.
    laneOf: ({ queue }) => `${route(queue)}`,
    listen: (listener) => members.listen(listener),
    close: () => members.close(),
  }
}

function operationsOf(members: Members): Operations {
  const of = ({ queue }: { queue: string }) => members.of(queue)
  const sum = <Name extends string>(name: Name, answers: readonly Record<Name, number>[]) =>
    answers.reduce((total, answer) => total + answer[name], 0)
  return {
    configure: (input) => of(input).call((operations) => operations.configure(input)),
    limitGroup: (input) => of(input).call((operations) => operations.limitGroup(input)),
    settings: (input) => of(input).call((operations) => operations.settings(input)),
    claim: (input) => of(input).call((operations) => operations.claim(input)),
    complete: (input) => of(input).call((operations) => operations.complete(input)),
    fail: (input) => of(input).call((operations) => operations.fail(input)),
    async release(input) {
      await checkTogether(members, input.queue, [...new Set(input.items.flatMap(({ park }) => park?.after ?? []))])
      return of(input).call((operations) => operations.release(input))
    },
    extend: (input) => of(input).call((operations) => operations.extend(input)),
    journal: (input) => of(input).call((operations) => operations.journal(input)),
    list: (input) => of(input).call((operations) => operations.list(input)),
    groups: (input) => of(input).call((operations) => operations.groups(input)),
    bulk: (input) => of(input).call((operations) => operations.bulk(input)),

    find: (input) => members.byId(input.ids.length, (operations) => operations.find(input)),
    async outcomes(input) {
      let answered = input.ids.length
      const found = await members.byId(input.ids.length, async (operations) => {
        const outcomes = await operations.outcomes(input)
        answered = Math.min(answered, outcomes.length)
        return outcomes
      })
      return found.slice(0, answered)
    },
    cancel: (input) => members.byId(input.ids.length, (operations) => operations.cancel(input)),
    update: (input) => members.byId(input.items.length, (operations) => operations.update(input)),
    entries: (input) => members.byId(input.items.length, (operations) => operations.entries(input)),
    async signal({ items }) {
      const told = await members.byId(items.length, async (operations) => {
        const answers = await operations.signal({ items })
        return answers.map((answer) => (answer.status === 'none' ? null : answer))
      })
      return items.map((item, at) => told[at] ?? { status: 'none', id: 'id' in item ? item.id : null })
    },
    relatives: (input) => members.byId(input.ids.length, (operations) => operations.relatives(input)),
    async ahead(input) {
      const [before = null] = await members.byId(1, async (operations) => [await operations.ahead(input)])
      return before
    },
    async requeue(input) {
      if ('queue' in input) return of(input).call((operations) => operations.requeue(input))
      const isEnough = (answers: { requeued: number }[]) => sum('requeued', answers) >= input.ids.length
      const answers = await members.ask((operations) => operations.requeue(input), isEnough)
      return { requeued: sum('requeued', answers), now: Math.max(...answers.map(({ now }) => now)) }
    },
    async remove(input) {
      if ('queue' in input) return of(input).call((operations) => operations.remove(input))
      const isEnough = (answers: { removed: number }[]) => sum('removed', answers) >= input.ids.length
      const answers = await members.ask((operations) => operations.remove(input), isEnough)
      return { removed: sum('removed', answers), more: answers.some(({ more }) => more) }
    },

    async push({ jobs, ...rest }) {
      if (rest.whole) members.one(jobs)
      const push = async (operations: Operations, own: readonly NewJob[]) =>
        explained(members, jobs, own, await operations.push({ jobs: own, ...rest }))
      return members.split(jobs, push, ({ id }, error) => ({ status: 'failed', id, error }))
    },
    restore: ({ records }) => members.split(records, (operations, own) => operations.restore({ records: own })),
    async record({ slices }) {
      const record = async (operations: Operations, own: typeof slices) => {
        await operations.record({ slices: own })
        return own
      }
      await members.split(slices, record, (slice) => slice)
    },
    async heartbeat({ workers, gone }) {
      if (gone.length > 0) await members.reached((operations) => operations.heartbeat({ workers: [], gone }))
      const beat = (operations: Operations, own: typeof workers) => operations.heartbeat({ workers: own, gone: [] })
      return members.split(workers, beat, () => false)
    },

    async stats(input) {
      if (input.queue !== undefined) return members.of(input.queue).call((operations) => operations.stats(input))
      return (await members.ask((operations) => operations.stats(input))).flat()
    },
    async workers(input) {
      if (input.queue !== undefined) return members.of(input.queue).call((operations) => operations.workers(input))
      const all = (await members.ask((operations) => operations.workers(input))).flat()
      return all.sort((a, b) => a.since - b.since || compare(a.id, b.id) || compare(a.queue, b.queue))
    },
    async sweep(input) {
      const all = await members.reached((operations) => operations.sweep(input))
      const due = all.flatMap(({ schedules }) => schedules?.due ?? [])
      due.sort((a, b) => (a.nextAt ?? 0) - (b.nextAt ?? 0) || compare(a.name, b.name))
      const now = Math.max(...all.map(({ schedules }) => schedules?.now ?? 0))
      const nextDue = Math.min(...all.map((swept) => swept.nextDue ?? Number.POSITIVE_INFINITY))
      return {
        lost: all.flatMap(({ lost }) => lost),
        ...{ promoted: sum('promoted', all), expired: sum('expired', all), queues: sum('queues', all) },
        more: all.some(({ more }) => more),
        nextDue: nextDue === Number.POSITIVE_INFINITY ? null : nextDue,
        schedules: due.length === 0 ? null : { now, due: due.slice(0, DEFAULTS.schedule.due) },
      }
    },

    async declare({ schedules }) {
      const given = schedules.map((declaration) => ({ queue: declaration.job.queue, declaration }))
      const outcomes = await members.split(given, (operations, own) =>
        operations.declare({ schedules: own.map(({ declaration }) => declaration) }),
      )
      for (const [at, { queue, declaration }] of given.entries()) {
        // Until now it may have been in another store, with another queue.
        if (outcomes[at] === 'created') await members.others(queue, ({ removeSchedule }) => removeSchedule(declaration))
      }
      return outcomes
    },
    async schedules(input) {
      const isEnough = (answers: unknown[][]) => input.name !== undefined && answers.flat().length > 0
      // One more than asked for: its mark is none.
      const read = { ...input, limit: input.limit + 1 }
      const all = (await members.ask((operations) => operations.schedules(read), isEnough)).flat()
      const shown = all.filter(({ name }) => name !== MARK).sort((a, b) => compare(a.name, b.name))
      return shown.slice(0, input.limit)
    },
    async pauseSchedule(input) {
      if (input.name === MARK) return false
      const isEnough = (answers: boolean[]) => answers.includes(true)
      return isEnough(await members.ask((operations) => operations.pauseSchedule(input), isEnough))
    },
    async removeSchedule(input) {
      if (input.name === MARK) return false
      const isEnough = (answers: boolean[]) => answers.includes(true)
      return isEnough(await members.ask((operations) => operations.removeSchedule(input), isEnough))
    },
    async fire({ firings }) {
      const pushing = firings.flatMap((firing) => firing.jobs.slice(0, 1).map(({ queue }) => ({ queue, firing })))
      const others = firings.filter(({ jobs }) => jobs.length === 0)
      const push = (operations: Operations, own: readonly (typeof pushing)[number][]) =>
        operations.fire({ firings: own.map(({ firing }) => firing) })
      // Without jobs it is not known where they are.
      const plan = async (operations: Operations) =>
        (await operations.fire({ firings: others })).map((outcome) => (outcome.status === 'stale' ? null : outcome))
      const planning = others.length === 0 && pushing.length > 0 ? [] : members.byId(others.length, plan)
      const [fired, planned] = await Promise.all([members.split(pushing, push), planning])
      const [first, second] = [fired.values(), planned.values()]
      return firings.map(({ jobs }) => (jobs.length > 0 ? first : second).next().value ?? { status: 'stale' })
    },
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** A parked job can wait only for jobs of its own store. @throws AcrossShards */
async function checkTogether(members: Members, queue: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const found = await members.byId(ids.length, (operations) => operations.relatives({ ids, limit: 1 }))
  const other = found.find((one) => one !== null && members.of(one.queue) !== members.of(queue))
  if (other) throw members.across(queue, other.queue)
}

/** A parent that its store does not know may be in another one. */
async function explained(
  members: Members,
  jobs: readonly NewJob[],
  own: readonly NewJob[],
  outcomes: PushOutcome[],
): Promise<PushOutcome[]> {
  const parents = [...new Set(outcomes.flatMap(({ parent }) => parent ?? []))]
  if (parents.length === 0) return outcomes
  const look = members.byId(parents.length, (operations) => operations.relatives({ ids: parents, limit: 1 }))
  const found = await look.catch((error: unknown) => storeError(error, 'the look for a parent'))
  return outcomes.map((outcome, at): PushOutcome => {
    const { id, parent } = outcome
    const queue = own[at]?.queue ?? ''
    if (parent === undefined) return outcome
    if (!Array.isArray(found)) return { status: 'failed', id, error: found }
    const other = jobs.find((job) => job.id === parent)?.queue ?? found[parents.indexOf(parent)]?.queue
    if (other === undefined || members.of(other) === members.of(queue)) return outcome
    return { status: 'failed', id, error: members.across(queue, other) }
  })
}

function transactionsOf(members: Members, takesSettings: boolean): StoreTransactions {
  const transactions = (member: Member) => {
    if (member.store?.transactions !== undefined) return member.store.transactions
    throw new MillpondError('StoreUnavailable', `${member.name} could not be opened yet`)
  }
  return {
    takesSettings,
    begin: (queue) => transactions(members.of(queue)).begin(queue),
    push: async (input) =>
      explained(members, input.jobs, input.jobs, await transactions(members.one(input.jobs)).push(input)),
  }
}
