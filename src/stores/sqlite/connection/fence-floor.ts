/**
 * Claims wait for no disk, so a power cut undoes the last ones, and their fences would be given out once more. Workers on the
 * machine are gone then, but those of other machines (`millpond serve`) are not. So the first process to open the file after a
 * start of the machine raises the floor above which fences are given out from then on.
 */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import type { Database } from './database.ts'
import { Statements } from './statements.ts'
import { integer } from './values.ts'
import { inTransaction, whileBusy } from './while-busy.ts'

/** Milliseconds. A computed time of the start moves with every correction of the clock. To raise the floor for that does no harm. */
const START_PRECISION = 600_000

/** Differs after every start of the machine. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return String(Math.round((Date.now() - uptime() * 1000) / START_PRECISION))
  }
}

/** The greatest fence that may have been given out before this start of the machine and be forgotten. */
export function fenceFloor(db: Database, busyTimeout: number): number {
  const statements = new Statements(db)
  const boot = bootId()
  const read = () => whileBusy(busyTimeout, () => statements.get('fences/floor', { boot }))
  if (read()?.current !== 1) {
    // The floor is on the disk before any fence above it is given out.
    db.exec('pragma synchronous = full')
    inTransaction(db, busyTimeout, () => {
      statements.run('fences/raise', { boot })
      statements.run('fences/boot', { boot })
    })
    db.exec('pragma synchronous = normal')
  }
  return integer(read()?.fences)
}
