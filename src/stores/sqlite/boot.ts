/**
 * Claims wait for no disk, so a power cut undoes the last ones, and their fences would be given out once more. Workers on the
 * machine are gone then, but those of other machines (`millpond serve`) are not. So who opens the file first after the machine has
 * started anew raises the floor above which fences are given out from then on.
 */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { whileBusy } from './connection.ts'
import { integer, textOrNull } from './values.ts'

/** More than one job can be claimed in the moments that a power cut undoes. */
const STEP = 100_000
/** Where the time of the start is computed, it moves with every correction of the clock; to see a start in that costs no more than a step. */
const GRAIN = 600_000

/** Differs after every start of the machine. */
function boot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return String(Math.round((Date.now() - uptime() * 1000) / GRAIN))
  }
}

/** The greatest fence that may have been given out before this start of the machine and be forgotten. */
export function fenceFloor(db: DatabaseSync, busyTimeout: number): number {
  const now = boot()
  const value = (key: string) => db.prepare('select value from millpond_meta where key = ?').get(key)?.value ?? null
  const floor = () => integer(value('fences') ?? 0)
  if (whileBusy(busyTimeout, () => textOrNull(value('boot'))) === now) return floor()
  // On the disk before any fence above it is given out.
  db.exec('pragma synchronous = full')
  whileBusy(busyTimeout, () => db.exec('begin immediate'))
  try {
    const before = textOrNull(value('boot'))
    const keep = db.prepare(
      `insert into millpond_meta (key, value) values (?, ?) on conflict do update set value = excluded.value`,
    )
    if (before !== null && before !== now) keep.run('fences', floor() + STEP)
    keep.run('boot', now)
    db.exec('commit')
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    throw error
  } finally {
    db.exec('pragma synchronous = normal')
  }
  return floor()
}
