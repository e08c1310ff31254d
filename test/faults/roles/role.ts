/** What every role begins with: its settings, its line to the test, and an end when the test is gone. */

import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, Millpond } from '../../../src/index.ts'
import type { Message } from '../harness.ts'

process.on('disconnect', () => process.exit())
// Node writes its cache when a process ends by itself, and many here are killed.
setImmediate(flushCompileCache)

/** The settings that the test gave; they are the role's own business. */
export function config<T>(): T {
  return JSON.parse(process.argv[2] ?? '{}')
}

export function say(kind: string, fields: Record<string, unknown> = {}): void {
  process.send?.({ kind, ...fields })
}

/** Calls back whenever the test says so. */
export function onHearing(kind: string, heard: () => unknown): void {
  process.on('message', (message: Message) => {
    if (message.kind === kind) heard()
  })
}

export function hearing(kind: string): Promise<Message> {
  return new Promise((resolve) => {
    const listener = (message: Message) => {
      if (message.kind !== kind) return
      process.off('message', listener)
      resolve(message)
    }
    process.on('message', listener)
  })
}

/** The code of a MillpondError; anything else is not foreseen and ends the process. */
export function codeOf(error: unknown): string {
  if (isMillpondError(error)) return error.code
  throw error
}

/** Opens a pond, also while the test has the server down: a service manager would start the process again. */
export async function openPatiently(url: string): Promise<Millpond> {
  for (;;) {
    try {
      return await Millpond.open(url)
    } catch (error) {
      if (!isMillpondError(error) || !error.retryable) throw error
      await sleep(100)
    }
  }
}

/** Tells the test what goes wrong in the background. */
export function sayTrouble(pond: Millpond): void {
  pond.on('error', (error) => say('trouble', { code: error.code, message: error.message }))
}

/** An INSERT of one row, with the parameters as the URL's database writes them. */
export function insertion(url: string, table: string, columns: readonly string[]): string {
  const numbered = url.startsWith('postgres')
  const values = columns.map((_, i) => (numbered ? `$${i + 1}` : '?'))
  return `insert into ${table} (${columns.join(', ')}) values (${values.join(', ')})`
}
