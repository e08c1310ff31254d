/** A disk that is small enough to fill: a tmpfs of its own, where that is allowed. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { isMillpondError, type Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { settles } from './harness.ts'

/** Why there is no small disk here; false: there is. */
export const noDisk: string | false = whyNoDisk()

function whyNoDisk(): string | false {
  if (process.platform !== 'linux') return 'a small disk needs tmpfs, which is Linux'
  if (process.getuid?.() !== 0) return 'only root may mount a tmpfs; the file size limit stands in for it'
  return false
}

export class Disk {
  readonly path: string
  readonly #ballast: string

  constructor(path: string, ballast: number) {
    this.path = path
    this.#ballast = join(path, 'ballast')
    writeFileSync(this.#ballast, new Uint8Array(ballast))
  }

  /** Someone makes room. */
  free(): void {
    rmSync(this.#ballast)
  }
}

/** @returns undefined, and the test is skipped, where even root may not mount */
export function smallDisk(t: TestContext, size = 3 << 20, ballast = 2 << 20): Disk | undefined {
  const path = join(scratch(t), 'disk')
  mkdirSync(path)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    t.skip(`no tmpfs can be mounted here: ${error}`)
    return undefined
  }
  after(t, () => execFileSync('umount', ['--lazy', path]))
  return new Disk(path, ballast)
}

/** Fills the disk to the last page, with a file beside the database. */
export function fill(disk: Disk): void {
  for (const size of [65_536, 4096, 1]) {
    try {
      for (let i = 0; ; i++) writeFileSync(join(disk.path, `filling-${size}-${i}`), new Uint8Array(size))
    } catch {
      // No room for this size.
    }
  }
}

/** Pushes jobs of many sizes at once until not even the smallest finds room. @returns what was acknowledged, and the codes of the refusals */
export async function pushUntilFull(pond: Millpond, queue: string): Promise<{ ids: string[]; codes: Set<string> }> {
  const jobs = pond.queue<string>(queue)
  const ids: string[] = []
  const codes = new Set<string>()
  for (const size of [20_000, 1000, 10]) {
    for (let refused = 0; refused < 3; ) {
      const pushes = Array.from({ length: 24 }, () => jobs.push('x'.repeat(size)))
      const outcomes = await settles('pushes on a full disk', Promise.allSettled(pushes))
      if (outcomes.every(({ status }) => status === 'rejected')) refused++
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') ids.push(outcome.value.id)
        else codes.add(isMillpondError(outcome.reason) ? outcome.reason.code : String(outcome.reason))
      }
    }
  }
  return { ids, codes }
}

/** Makes a database of the caller's own, with a table for effects. */
export function withEffects(path: string): void {
  const db = new DatabaseSync(path)
  db.exec('create table effects (id text)')
  db.close()
}
