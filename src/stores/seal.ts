/**
 * A store that holds no payload in plain: data, progress, results and the text of errors are sealed on their way in and opened on their
 * way out. What was stored in plain before stays readable.
 */

import type { Input, OperationName, Output, Store, StoreTransactions } from '../store.ts'
import type { Sealer, SealPlace } from '../values/encoding/seal.ts'
import { isSealed } from '../values/encoding/sealed-form.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { meetsAgain } from '../values/jobs/once.ts'
import type { Completion, Encoded, Entry, JobOutcome, JobRecord, NewEntry, NewJob } from '../values/jobs/records.ts'
import { isSignal } from '../values/jobs/step-names.ts'
import type { JobFilter } from '../values/operations/requests.ts'
import type { Declaration, ScheduleRecord } from '../values/schedules/records.ts'

type Of = Pick<SealPlace, 'queue' | 'id'>

/** Data that may become those of another job with the key are sealed to the key: contract/seal.md. */
const placeOf = (job: NewJob): string => (job.key !== null && meetsAgain(job) ? keyPlace(job.key) : job.id)
const keyPlace = (key: string): string => `key ${key}`

export function sealed(store: Store, sealer: Sealer): Store {
  const { operations, transactions } = store

  const sealPart = (part: SealPlace['part'], body: Encoded | null, { queue, id }: Of) =>
    body === null ? null : sealer.seal(body, { part, queue, id })
  const openPart = (part: SealPlace['part'], body: Encoded | null, { queue, id }: Of) =>
    body === null ? null : sealer.open(body, { part, queue, id })
  const pushed = (jobs: readonly NewJob[]) =>
    jobs.map((job) => ({ ...job, data: sealer.seal(job.data, { part: 'data', queue: job.queue, id: placeOf(job) }) }))
  const openData = (data: Encoded, { queue, id }: Of, key: string | null): Encoded => {
    const opened = openPart('data', data, { queue, id }) ?? data
    if (opened !== data || key === null) return opened
    return openPart('data', data, { queue, id: keyPlace(key) }) ?? data
  }
  const completed = (queue: string, items: readonly Completion[]) =>
    items.map((item) => ({ ...item, result: sealPart('result', item.result, { queue, id: item.id }) }))

  const entryPlace = (id: string | null, name: string): SealPlace => ({
    part: 'step',
    queue: '',
    id: id === null || isSignal(name) ? name : `${id} ${name}`,
  })
  const sealEntry = <Kind extends NewEntry>(id: string | null, entry: Kind): Kind =>
    entry.body === null ? entry : { ...entry, body: sealer.seal(entry.body, entryPlace(id, entry.name)) }
  const openEntry = (id: string, entry: Entry): Entry =>
    entry.body === null ? entry : { ...entry, body: sealer.open(entry.body, entryPlace(id, entry.name)) }
  const sealEntries = (id: string, entries: readonly NewEntry[]) => entries.map((each) => sealEntry(id, each))

  function openedOutcome<Kind extends JobOutcome>(outcome: Kind): Kind {
    const { result, error } = outcome
    return {
      ...outcome,
      result: openPart('result', result, outcome),
      error: error === null ? null : sealer.openError(error, outcome),
    }
  }

  const opened = <Kind extends JobRecord>(record: Kind): Kind => ({
    ...openedOutcome(record),
    data: openData(record.data, record, record.key),
    progress: openPart('progress', record.progress, record),
  })

  /** The data of a schedule are sealed to its name. A process that cannot open them may change its line: they stay as they are. */
  function declared(declaration: Declaration): Declaration {
    const { name, version, job } = declaration
    const isOpen = !isSealed(job.data.body)
    const data = isOpen ? sealer.seal(job.data, { part: 'data', queue: job.queue, id: name }) : job.data
    return { ...declaration, version: sealer.version(version), job: { ...job, data } }
  }
  const openedSchedule = (schedule: ScheduleRecord): ScheduleRecord => {
    const { name, job } = schedule
    return { ...schedule, job: { ...job, data: sealer.open(job.data, { part: 'data', queue: job.queue, id: name }) } }
  }

  function restored(record: JobRecord): JobRecord {
    const { data, error } = record
    return {
      ...record,
      data: sealer.seal(data, { part: 'data', queue: record.queue, id: record.id }),
      progress: sealPart('progress', record.progress, record),
      result: sealPart('result', record.result, record),
      error: error === null ? null : sealer.sealError(error, record),
      ...(record.entries && { entries: sealEntries(record.id, record.entries) }),
    }
  }

  /** An update names no queue, which is part of what the data is sealed to. */
  async function updated({ items }: Input<'update'>): Promise<Input<'update'>> {
    const ids = items.flatMap(({ id, data }) => (data === undefined ? [] : [id]))
    if (ids.length === 0) return { items }
    const found = await operations.find({ ids })
    const queues = new Map(found.flatMap((record) => (record === null ? [] : [[record.id, record.queue] as const])))
    return {
      items: items.map(({ data, ...item }) => {
        const queue = queues.get(item.id)
        // A job that the store does not know is not changed.
        return data === undefined || queue === undefined
          ? item
          : { ...item, data: sealer.seal(data, { part: 'data', queue, id: item.id }) }
      }),
    }
  }

  const wrapped: Partial<{ [Name in OperationName]: (input: Input<Name>) => Promise<Output<Name>> }> = {
    push: (input) => operations.push({ ...input, jobs: pushed(input.jobs) }),
    claim: async (input) => {
      const claimed = await operations.claim(input)
      for (const job of claimed.jobs) {
        // Not a copy: a store may know its claims by their identity.
        Object.assign(job, { data: openData(job.data, { queue: input.queue, id: job.id }, job.key) })
      }
      return claimed
    },
    complete: (input) => operations.complete({ ...input, items: completed(input.queue, input.items) }),
    fail: ({ queue, items, ...rest }) =>
      operations.fail({
        ...{ ...rest, queue },
        items: items.map((item) => ({ ...item, error: sealer.sealError(item.error, { queue, id: item.id }) })),
      }),
    extend: ({ queue, items, lease }) =>
      operations.extend({
        ...{ queue, lease },
        items: items.map((item) => ({
          ...item,
          progress: sealPart('progress', item.progress, { queue, id: item.id }),
        })),
      }),
    journal: ({ queue, items }) =>
      operations.journal({
        queue,
        items: items.map((item) => ({ ...item, entries: sealEntries(item.id, item.entries) })),
      }),
    release: ({ queue, items }) =>
      operations.release({
        queue,
        items: items.map(({ park, ...item }) =>
          park === undefined ? item : { ...item, park: { ...park, entries: sealEntries(item.id, park.entries) } },
        ),
      }),
    signal: ({ items }) => operations.signal({ items: items.map((item) => sealEntry(null, item)) }),
    entries: async ({ items }) => {
      const pages = await operations.entries({ items })
      return pages.map((page, at) => {
        const id = items[at]?.id ?? ''
        return page && { ...page, entries: page.entries.map((each) => openEntry(id, each)) }
      })
    },
    update: async (input) => operations.update(await updated(input)),
    restore: ({ records }) => operations.restore({ records: records.map(restored) }),
    find: async (input) => (await operations.find(input)).map((record) => (record === null ? null : opened(record))),
    outcomes: async (input) =>
      (await operations.outcomes(input)).map((outcome) => (outcome === null ? null : openedOutcome(outcome))),
    declare: ({ schedules }) => operations.declare({ schedules: schedules.map(declared) }),
    schedules: async (input) => (await operations.schedules(input)).map(openedSchedule),
    sweep: async (input) => {
      const { schedules, ...swept } = await operations.sweep(input)
      return { ...swept, schedules: schedules && { ...schedules, due: schedules.due.map(openedSchedule) } }
    },
    fire: ({ firings }) => operations.fire({ firings: firings.map((each) => ({ ...each, jobs: pushed(each.jobs) })) }),
    list: async (input) => {
      checkFilter(input.filter)
      const { jobs, next } = await operations.list(input)
      return { jobs: jobs.map(opened), next }
    },
    bulk: async (input) => {
      checkFilter(input.filter)
      return operations.bulk(input)
    },
  }

  return {
    ...store,
    capabilities: { ...store.capabilities, text: false },
    operations: { ...operations, ...wrapped },
    ...(transactions && { transactions: sealedTransactions(transactions) }),
  }

  function sealedTransactions(plain: StoreTransactions): StoreTransactions {
    return {
      takesSettings: plain.takesSettings,
      begin(queue) {
        const transaction = plain.begin(queue)
        return {
          get query() {
            return transaction.query
          },
          complete: ({ queue, items }) => transaction.complete({ queue, items: completed(queue, items) }),
          journal: ({ queue, items }) =>
            transaction.journal({
              queue,
              items: items.map((item) => ({ ...item, entries: sealEntries(item.id, item.entries) })),
            }),
          rollback: () => transaction.rollback(),
        }
      },
      push: (input) => plain.push({ ...input, jobs: pushed(input.jobs) }),
    }
  }
}

/** @throws NotSupported */
function checkFilter(filter: JobFilter | undefined): void {
  if (filter?.text === undefined && filter?.data === undefined && filter?.errorText === undefined) return
  const message = 'sealed payloads and errors cannot be searched: leave out text, data and errorText; errorCode works'
  throw new MillpondError('NotSupported', message)
}
