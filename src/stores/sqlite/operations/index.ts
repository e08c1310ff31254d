/** The main thread's side of the operations: what crosses to the thread in another form, or is more than it needs. */
import type { Operations } from '../../../store.ts'
import type { Park } from '../../../values/jobs/records.ts'
import { copyEncoded } from '../../jobs.ts'
import type { ThreadClient } from '../connection/client.ts'
import { claimedJobs, copyEntries, copyJournal, packJobs, pushOutcomes } from '../wire.ts'

export function operationsOf(client: ThreadClient): Operations {
  return {
    configure: (input) => client.call('configure', input),
    limitGroup: (input) => client.call('limitGroup', input),
    settings: (input) => client.call('settings', input),
    async push({ jobs, whole = false }) {
      return pushOutcomes(jobs, await client.call('push', { jobs: packJobs(jobs), whole }))
    },
    async claim(input) {
      const { jobs, data, ...claimed } = await client.call('claim', input)
      return { ...claimed, jobs: claimedJobs({ jobs, data }) }
    },
    complete: (input) => client.complete(input),
    // Callers may have more beside what the contract names, which cannot be cloned or is large.
    fail: ({ queue, items }) =>
      client.call('fail', {
        queue,
        items: items.map(({ id, fence, error, delay, log }) => ({ id, fence, error, delay, log })),
      }),
    release: ({ queue, items }) =>
      client.call('release', {
        queue,
        items: items.map(({ id, fence, pause = 0, log, park }) => ({
          ...{ id, fence, pause, log },
          ...(park !== undefined && { park: copyPark(park) }),
        })),
      }),
    extend: ({ queue, lease, items: given }) => {
      const items = given.map(({ id, fence, progress, log }) => ({ id, fence, progress: copyEncoded(progress), log }))
      return client.call('extend', { queue, lease, items })
    },
    journal: (input) => client.call('journal', copyJournal(input)),
    entries: ({ items }) => client.call('entries', { items: items.map(({ id, after }) => ({ id, after })) }),
    signal: ({ items }) =>
      client.call('signal', {
        items: items.map((item) => ({
          ...('id' in item ? { id: item.id } : { queue: item.queue, key: item.key }),
          ...{ name: item.name, meta: item.meta, body: copyEncoded(item.body) },
        })),
      }),
    sweep: (input) => client.call('sweep', input),
    cancel: (input) => client.call('cancel', input),
    update: ({ items }) =>
      client.call('update', {
        items: items.map(({ data, ...item }) => (data === undefined ? item : { ...item, data: copyEncoded(data) })),
      }),
    requeue: (input) => client.call('requeue', input),
    remove: (input) => client.call('remove', input),
    bulk: (input) => client.call('bulk', input),
    restore: ({ records }) =>
      client.call('restore', {
        records: records.map((record) => ({
          ...record,
          data: copyEncoded(record.data),
          progress: copyEncoded(record.progress),
          result: copyEncoded(record.result),
          ...(record.entries !== undefined && { entries: copyEntries(record.entries) }),
        })),
      }),
    find: (input) => client.call('find', input),
    outcomes: (input) => client.call('outcomes', input),
    list: (input) => client.call('list', input),
    groups: (input) => client.call('groups', input),
    ahead: (input) => client.call('ahead', input),
    relatives: (input) => client.call('relatives', input),
    stats: (input) => client.call('stats', input),
    record: (input) => client.call('record', input),
    heartbeat: (input) => client.call('heartbeat', input),
    workers: (input) => client.call('workers', input),
    declare: ({ schedules }) =>
      client.call('declare', {
        schedules: schedules.map((each) => ({ ...each, job: { ...each.job, data: copyEncoded(each.job.data) } })),
      }),
    schedules: (input) => client.call('schedules', input),
    pauseSchedule: (input) => client.call('pauseSchedule', input),
    removeSchedule: (input) => client.call('removeSchedule', input),
    fire: ({ firings }) =>
      client.call('fire', {
        firings: firings.map((each) => ({
          ...each,
          jobs: each.jobs.map((job) => ({ ...job, data: copyEncoded(job.data) })),
        })),
      }),
  }
}

const copyPark = ({ until, signals, after, entries, reason }: Park): Park => ({
  ...{ until, signals, reason },
  after: [...after],
  entries: copyEntries(entries),
})
