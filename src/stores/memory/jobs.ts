/**
 * All jobs of a store by id, in 16 maps by the last digit of the id, which is random in a UUIDv7.
 *
 * One map would do but for two things: at a million entries it stops the process for a quarter of a second whenever it
 * grows or clears out what was deleted, and it can hold no more than 16.7 million. More maps than these cost time.
 */

import type { Job } from './job.ts'

export class Jobs {
  readonly #shards: readonly Map<string, Job>[] = Array.from({ length: 16 }, () => new Map<string, Job>())

  get(id: string): Job | undefined {
    return this.#shard(id)?.get(id)
  }

  add(job: Job): void {
    this.#shard(job.id)?.set(job.id, job)
  }

  remove(job: Job): void {
    this.#shard(job.id)?.delete(job.id)
  }

  clear(): void {
    for (const shard of this.#shards) shard.clear()
  }

  #shard(id: string): Map<string, Job> | undefined {
    const code = id.charCodeAt(id.length - 1)
    // The value of a hexadecimal digit; of any other character, something else that is always the same.
    return this.#shards[((code >> 6) * 9 + code) & 15]
  }
}
