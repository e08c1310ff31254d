/**
 * Pushes of this process with ids of the caller's own that the store has not answered yet. A job that waits for one of them is sent once
 * that is settled, so a parent's push need not be awaited before its child's. Ids that Millpond makes are known only then anyway.
 */
import type { NewJob } from '../store.ts'
import type { Pushed } from './push.ts'

export class UnsettledPushes {
  /** By id. Each settles with the id of the job that the push came to; undefined: it failed. */
  readonly #pushes = new Map<string, Promise<string | undefined>>()

  /** @param ids in the order of the answer */
  add(ids: readonly string[], push: Promise<readonly Pushed[]>): void {
    for (const [at, given] of ids.entries()) {
      const id = given.toLowerCase()
      const settled = push.then(
        (pushed) => pushed[at]?.id,
        () => undefined,
      )
      this.#pushes.set(id, settled)
      void settled.then(() => {
        if (this.#pushes.get(id) === settled) this.#pushes.delete(id)
      })
    }
  }

  /** @returns undefined: none of the jobs waits for an unsettled push; else the jobs, once those are settled */
  settled(jobs: readonly NewJob[]): Promise<NewJob[]> | undefined {
    if (this.#pushes.size === 0) return undefined
    const awaited = new Set<string>()
    for (const { after = [], within } of jobs) {
      for (const id of after) if (this.#pushes.has(id)) awaited.add(id)
      if (within !== undefined && this.#pushes.has(within)) awaited.add(within)
    }
    return awaited.size === 0 ? undefined : this.#renamed(jobs, [...awaited])
  }

  /** Where a parent's push came to another job, which has its key, that one is the parent. */
  async #renamed(jobs: readonly NewJob[], awaited: readonly string[]): Promise<NewJob[]> {
    const found = await Promise.all(awaited.map((id) => this.#pushes.get(id)))
    const names = new Map(awaited.map((id, at) => [id, found[at] ?? id]))
    return jobs.map((job) => renamed(job, names))
  }
}

/** @param names the ids of jobs by the ids that they were pushed with */
export function renamed(job: NewJob, names: ReadonlyMap<string, string>): NewJob {
  const { after, within } = job
  const nameOf = (id: string) => names.get(id) ?? id
  return {
    ...job,
    ...(after !== undefined && { after: [...new Set(after.map(nameOf))] }),
    ...(within !== undefined && { within: nameOf(within) }),
  }
}
