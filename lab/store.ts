/**
 * Calls of the store's interface, where a store is measured without queues and workers around it. Besides `views/`, no other file in lab/
 * knows that interface.
 */

import type { Store } from '../src/store.ts'
import { openStore } from '../src/stores/open.ts'
import { newId } from '../src/values/jobs/ids.ts'
import type { ClaimedJob, NewJob } from '../src/values/jobs/records.ts'

/** One job for each group named. */
export function newJobs(queue: string, groups: readonly (string | null)[]): NewJob[] {
  return groups.map((group, n) => ({
    ...{ id: newId(), queue, group, data: { encoding: 'json', body: `{"n":${n}}` }, fresh: true },
    ...{ priority: 4, delay: 0, runAt: null, key: null, attempts: null, timeout: null, trace: null },
  }))
}

/** Questions of people and tools to a store, which must stay quick while very many jobs wait. */
export const LOOKS = ['list waiting', 'list dead', 'stats', 'find'] as const
export type Look = (typeof LOOKS)[number]
const PAGE = 100
const PER_LIST = 1000

/** One queue of a store. */
export class Calls {
  readonly #store: Store
  readonly #queue: string

  private constructor(store: Store, queue: string) {
    this.#store = store
    this.#queue = queue
  }

  /** @param groupRunning how many jobs of a group may run at once */
  static async open(url: string, queue: string, groupRunning?: number): Promise<Calls> {
    return new Calls(await openStore(url, {}), queue).beside(queue, groupRunning)
  }

  /** Another queue of the same store. */
  async beside(queue: string, groupRunning?: number): Promise<Calls> {
    await this.#store.operations.configure({
      queue,
      capacity: null,
      ...(groupRunning === undefined ? {} : { groupRunning }),
    })
    return new Calls(this.#store, queue)
  }

  async push(jobs: NewJob[]): Promise<void> {
    await this.#store.operations.push({ jobs })
  }

  async claim(worker: string, limit: number, lease: number | null = null): Promise<readonly ClaimedJob[]> {
    return (await this.#store.operations.claim({ queue: this.#queue, worker, limit, lease })).jobs
  }

  async complete(jobs: readonly ClaimedJob[]): Promise<void> {
    const completions = jobs.map((claim) => ({ id: claim.id, fence: claim.fence, claim, result: null }))
    await this.#store.operations.complete({ queue: this.#queue, items: completions })
  }

  async release(jobs: readonly ClaimedJob[]): Promise<void> {
    const releases = jobs.map(({ id, fence }) => ({ id, fence }))
    await this.#store.operations.release({ queue: this.#queue, items: releases })
  }

  /** The id of the last job of a page: not of a job that was claimed and released just before. */
  async someId(): Promise<string> {
    const { jobs } = await this.#store.operations.list({ queue: this.#queue, state: 'waiting', limit: PAGE })
    return jobs.at(-1)?.id ?? newId()
  }

  /** @param id of some job that waits @returns what it took, in ms */
  async look(what: Look, id: string): Promise<number> {
    const began = performance.now()
    if (what === 'stats') await this.#store.operations.stats({ queue: this.#queue, minutes: 5 })
    else if (what === 'find') await this.#store.operations.find({ ids: [id] })
    else {
      const state = what === 'list dead' ? 'dead' : 'waiting'
      await this.#store.operations.list({ queue: this.#queue, state, limit: PAGE })
    }
    return performance.now() - began
  }

  /** The data of all waiting and scheduled jobs. A store without lists gives them as claims, which it gets back when it is closed. */
  async waiting(): Promise<number[]> {
    const numbers: number[] = []
    if (!this.#store.capabilities.lists) {
      for (;;) {
        const jobs = await this.claim('lab', PER_LIST)
        if (jobs.length === 0) return numbers
        numbers.push(...jobs.map(({ data }) => Number(data.body)))
      }
    }
    for (const state of ['waiting', 'scheduled'] as const) {
      let after: string | undefined
      do {
        const request = { queue: this.#queue, state, limit: PER_LIST, ...(after !== undefined && { after }) }
        const { jobs, next } = await this.#store.operations.list(request)
        numbers.push(...jobs.map(({ data }) => Number(data.body)))
        after = next ?? undefined
      } while (after !== undefined)
    }
    return numbers
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
