/**
 * Pushes of this process with ids of the caller's own that the store has not answered yet. A job that waits for one of them is sent once
 * that is settled, so a parent's push need not be awaited before its child's. Ids that Millpond makes are known only then anyway.
 */
import type { NewJob } from '../../values/jobs/records.ts'
import type { Pushed } from './options.ts'

interface Unsettled {
  push: Promise<readonly Pushed[]>
  /** The place of the job in the answer. */
  at: number
}

export class UnsettledPushes {
  readonly #pushes = new Map<string, Unsettled>()

  /** @param ids in the order of the answer; undefined: one that nobody knows yet */
  add(ids: readonly (string | undefined)[], push: Promise<readonly Pushed[]>): void {
    const own = new Map(ids.flatMap((id, at) => (id === undefined ? [] : [[id.toLowerCase(), { push, at }]])))
    for (const [id, unsettled] of own) this.#pushes.set(id, unsettled)
    const over = () => {
      for (const [id, unsettled] of own) if (this.#pushes.get(id) === unsettled) this.#pushes.delete(id)
    }
    push.then(over, over)
  }

  /** @returns undefined: none of the jobs waits for an unsettled push; else the jobs, once those are settled */
  settled(jobs: readonly NewJob[]): Promise<NewJob[]> | undefined {
    if (this.#pushes.size === 0) return undefined
    const awaited = new Set<string>()
    // Those of the same call are not waited for.
    const own = new Set(jobs.map(({ id }) => id))
    const isAwaited = (id: string) => this.#pushes.has(id) && !own.has(id)
    for (const { after = [], partOf } of jobs) {
      for (const id of after) if (isAwaited(id)) awaited.add(id)
      if (partOf !== undefined && isAwaited(partOf)) awaited.add(partOf)
    }
    return awaited.size === 0 ? undefined : this.#renamed(jobs, [...awaited])
  }

  /** Where a parent's push came to another job, which has its key, that one is the parent. */
  async #renamed(jobs: readonly NewJob[], awaited: readonly string[]): Promise<NewJob[]> {
    const pushes = awaited.map((id) => this.#idOf(id))
    const found = await Promise.all(pushes)
    const names = new Map(awaited.map((id, at) => [id, found[at] ?? id]))
    return jobs.map((job) => renamed(job, names))
  }

  /** Settles with the id of the job that the push came to; undefined: it failed. */
  async #idOf(id: string): Promise<string | undefined> {
    const unsettled = this.#pushes.get(id)
    try {
      return (await unsettled?.push)?.[unsettled?.at ?? 0]?.id
    } catch {
      return undefined
    }
  }
}

/** @param names the ids of jobs by the ids that they were pushed with */
export function renamed(job: NewJob, names: ReadonlyMap<string, string>): NewJob {
  const { after, partOf } = job
  const nameOf = (id: string) => names.get(id) ?? id
  return {
    ...job,
    ...(after !== undefined && { after: [...new Set(after.map(nameOf))] }),
    ...(partOf !== undefined && { partOf: nameOf(partOf) }),
  }
}
