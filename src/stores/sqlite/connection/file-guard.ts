/**
 * Notices what SQLite does not tell of while a file is open:
 * - Another program replaced, renamed, linked or removed the file or its log. SQLite would go on writing to a file that nobody finds again.
 * - Another SQLite library of this process has the file open. When it closes the file, the system drops the locks of ours.
 */
import { type BigIntStats, fstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { isMillpondError, MillpondError } from '../../../values/errors/errors.ts'

/** In ms. */
const LIBRARY_INTERVAL = 1000
/** After a look, the next one waits at least this many times as long as the look took. So looks cost 1 % of the time at most. */
const LIBRARY_SHARE = 100

const isSame = (one: BigIntStats, other: BigIntStats | undefined): boolean =>
  one.ino === other?.ino && one.dev === other.dev

const look = (path: string): BigIntStats | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })

/**
 * @throws StoreUnavailable for a file with several names: SQLite would keep a log for each, and the logs would
 *   overwrite each other's pages.
 */
export function assertOneName(path: string, { nlink }: BigIntStats): void {
  // Some file systems count none.
  if (nlink <= 1n) return
  const message = `${path} has several names (hard links): remove the others, or use symbolic links`
  throw new MillpondError('StoreUnavailable', message)
}

/**
 * Whether closing the connection would do harm: SQLite removes the log with what it takes for the last connection. While another library
 * writes to that log, ours is left open until the process ends.
 */
export const isShared = (error: unknown): boolean => isMillpondError(error, 'SecondLibrary')

export class FileGuard {
  readonly #path: string
  readonly #files: readonly [path: string, opened: BigIntStats][]
  /** Once wrong, always wrong: what was written meanwhile may be lost. */
  #error: MillpondError | null = null
  #nextLibraryLook = 0

  /** @param path of a database with an open connection, that has used it @throws SecondLibrary, StoreUnavailable */
  constructor(path: string) {
    this.#path = path
    // SQLite keeps the log beside the file that a symbolic link leads to.
    const real = realpathSync(path)
    this.#files = [real, `${real}-wal`].map((name) => [name, look(name) ?? this.#gone(name)])
    this.check()
  }

  /** See `isShared`. */
  get isShared(): boolean {
    return isShared(this.#error)
  }

  /** Before a transaction, and after what was written was brought to the disk. @throws SecondLibrary, StoreUnavailable */
  check(): void {
    try {
      if (this.#error !== null) throw this.#error
      for (const [name, opened] of this.#files) {
        const found = look(name)
        if (found === undefined || !isSame(opened, found)) {
          // The likeliest cause, and the better advice.
          this.#lookForLibraries()
          this.#gone(name)
        }
        assertOneName(name, found)
      }
      if (performance.now() >= this.#nextLibraryLook) this.#lookForLibraries()
    } catch (error) {
      if (error instanceof MillpondError) this.#error = error
      throw error
    }
  }

  #gone(name: string): never {
    const message =
      `${name} was replaced, renamed or removed while it was open: what was written since may be lost. Stop all ` +
      'processes that use it, put the right file there, and start them again'
    throw new MillpondError('StoreUnavailable', message)
  }

  #lookForLibraries(): void {
    const begun = performance.now()
    // A library opens this file once, however many connections it has.
    const shared = look(`${this.#files[0]?.[0]}-shm`)
    if (shared !== undefined && openedTimes(shared) > 1) {
      const message =
        `another SQLite library in this process has ${this.#path} open, which can damage it. Pass the library that ` +
        'your code uses as the option driver, or use node:sqlite in your code; then restart the process'
      throw new MillpondError('SecondLibrary', message)
    }
    const ended = performance.now()
    this.#nextLibraryLook = ended + Math.max(LIBRARY_INTERVAL, (ended - begun) * LIBRARY_SHARE)
  }
}

/** How many descriptors of this process are open on it; 0 where the system does not tell. */
function openedTimes(file: BigIntStats): number {
  return descriptors().filter((descriptor) => isOpenOn(descriptor, file)).length
}

function descriptors(): number[] {
  for (const folder of ['/proc/self/fd', '/dev/fd']) {
    try {
      return readdirSync(folder).map(Number)
    } catch {
      // Windows has neither; its locks are those of a handle, so two libraries do no harm there.
    }
  }
  return []
}

function isOpenOn(descriptor: number, file: BigIntStats): boolean {
  try {
    return isSame(file, fstatSync(descriptor, { bigint: true }))
  } catch {
    // It was closed meanwhile.
    return false
  }
}
