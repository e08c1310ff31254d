/** What is undone after a test. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

const undoings = new WeakMap<TestContext, (() => unknown)[]>()

/** After the test, last come first served: `t.after` begins with the first, and stops at the first that fails. */
export function after(t: TestContext, undo: () => unknown): void {
  const known = undoings.get(t)
  if (known !== undefined) {
    known.push(undo)
    return
  }
  const all = [undo]
  undoings.set(t, all)
  t.after(async () => {
    const errors: unknown[] = []
    for (const each of all.reverse()) {
      try {
        await each()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'cleaning up failed')
  })
}

/** A fresh folder, removed after the test and after all that was started in it. */
export function scratch(t: TestContext): string {
  const folder = newFolder()
  after(t, () => remove(folder))
  return folder
}

/** A fresh folder for many tests, removed when the process ends. */
export function sharedFolder(): string {
  const folder = newFolder()
  process.on('exit', () => remove(folder))
  return folder
}

/** A fresh folder for the check, removed after it. */
export async function inFolder<T>(check: (folder: string) => Promise<T>): Promise<T> {
  const folder = newFolder()
  try {
    return await check(folder)
  } finally {
    remove(folder)
  }
}

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'millpond-test-'))

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
