/**
 * The write-ahead log, for waiting until what was committed is on the disk. With `synchronous = full` SQLite waits within the
 * commit, and with it all who want to know of the commit. Here it commits without (`normal`), whoever needs no disk is
 * answered, and then the log is brought to the disk by the same call that SQLite would make.
 *
 * The file stays the same while a connection is open: SQLite overwrites the log from its beginning, and removes it after the
 * last connection. Its locks are on the database and the `-shm` file, so that closing this descriptor lets go of none.
 */
import { closeSync, fdatasyncSync, openSync, realpathSync } from 'node:fs'

export class Log {
  readonly #descriptor: number

  /** @param path of a database with an open connection; SQLite keeps the log beside the file that a link leads to */
  constructor(path: string) {
    // For writing too, without which Windows would not flush it.
    this.#descriptor = openSync(`${realpathSync(path)}-wal`, 'r+')
  }

  /** All commits before this call are on the disk when it returns. Throws where the disk fails: then nobody knows. */
  sync(): void {
    fdatasyncSync(this.#descriptor)
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
