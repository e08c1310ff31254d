/** The lock of a key, in the hands of the load that has it: renewed until the load ends, and given up unless it went with what was written. */
import type { PendingLoad } from './pending-load.ts'
import type { RedisLayer } from './redis-layer.ts'

export class Lock {
  readonly redis: RedisLayer
  readonly token: string
  readonly #load: PendingLoad
  readonly #timer: NodeJS.Timeout
  #toRelease = true
  #lost = false
  #writing = false

  constructor(redis: RedisLayer, load: PendingLoad, token: string, lease: number) {
    this.redis = redis
    this.token = token
    this.#load = load
    const renew = () => {
      // If Redis cannot be asked, writing will tell.
      redis.renew(load.key, token, lease).then(
        (ours) => this.#heard(ours),
        () => undefined,
      )
    }
    this.#timer = setInterval(renew, lease / 3)
    load.checkLock = renew
  }

  #heard(ours: boolean): void {
    if (ours) return
    this.#lost = true
    if (!this.#writing) this.#load.cancel()
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
    // If it cannot be told, those who wait do so until the lock expires.
    if (this.#toRelease) this.redis.release(this.#load.key, this.token).catch(() => undefined)
  }
}
