/**
 * The lock of a key in Redis, held by the load that has it: renewed until the load ends, and released unless it went
 * with what was written.
 */
import type { RedisLayer } from '../redis/redis-layer.ts'
import type { PendingLoad } from './pending-load.ts'

export class LoadLock {
  readonly redis: RedisLayer
  readonly token: string
  readonly #load: PendingLoad
  readonly #timer: NodeJS.Timeout
  #toRelease = true
  #lost = false
  #writing = false

  /** @param lease for how many ms the token lives unless it is renewed */
  constructor(redis: RedisLayer, load: PendingLoad, token: string, lease: number) {
    this.redis = redis
    this.token = token
    this.#load = load
    const renew = async () => {
      // If Redis cannot be asked, writing will tell.
      const isOurs = await redis.renew(load.key, token, lease).catch(() => true)
      this.#lost ||= !isOurs
      if (!isOurs && !this.#writing) load.cancel()
    }
    this.#timer = setInterval(renew, lease / 3)
    load.checkLock = renew
  }

  /**
   * The lock goes with what is written, and that is heard of before it is answered: from here on it is no news.
   * @param write answers as this does
   * @returns whether it was written under the lock; undefined: that is not known, or there was nothing to write
   */
  async write(write: () => Promise<boolean | undefined>): Promise<boolean | undefined> {
    this.#load.checkLock = undefined
    this.#writing = true
    const written = await write()
    this.#toRelease = written === undefined
    return written === undefined && this.#lost ? false : written
  }

  end(): void {
    clearInterval(this.#timer)
    this.#load.checkLock = undefined
    this.#writing = true
    // If this fails, the others wait until the lock expires.
    if (this.#toRelease) this.redis.release(this.#load.key, this.token).catch(() => undefined)
  }
}
