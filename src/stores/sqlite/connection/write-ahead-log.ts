/**
 * The write-ahead log, for waiting until commits are on the disk. With `synchronous = full` SQLite waits within the commit, and
 * every answer with it. Here it commits without (`normal`), answers that need no disk are given, and then the log is brought to
 * the disk by the same call that SQLite would make.
 *
 * The file stays the same while a connection is open: SQLite overwrites the log from its beginning, and removes it after the
 * last connection. Its locks are on the database and the `-shm` file, so closing this descriptor releases none.
 */
import { closeSync, fdatasyncSync, openSync, realpathSync } from 'node:fs'

export class WriteAheadLog {
  readonly #descriptor: number

  /** @param path of a database with an open connection; SQLite keeps the log beside the file that a link leads to */
  constructor(path: string) {
    // For writing too, without which Windows would not flush it.
    this.#descriptor = openSync(`${realpathSync(path)}-wal`, 'r+')
  }

  /** All commits before this call are on the disk when it returns. If it throws, nobody knows whether they are. */
  sync(): void {
    fdatasyncSync(this.#descriptor)
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
