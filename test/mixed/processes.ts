/** Programs in both languages that push and run jobs, until they end or are killed. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PYTHON_FOLDER, pythonEnvironment } from '../python/environment.ts'

export type Language = 'TypeScript' | 'Python'

const SCRIPTS = { produce: 'producer', work: 'worker', limited: 'limited' }
const python = await pythonEnvironment()

/** @param args of the role: see python/tests/load.py */
export function start(t: TestContext, language: Language, role: keyof typeof SCRIPTS, args: string[]): ChildProcess {
  const script = fileURLToPath(new URL(`roles/${SCRIPTS[role]}.ts`, import.meta.url))
  const child =
    language === 'Python'
      ? spawn(python.program, ['-m', 'tests.load', role, ...args], {
          cwd: PYTHON_FOLDER,
          env: { ...process.env, ...python.variables },
          stdio: ['ignore', 'pipe', 'inherit'],
        })
      : spawn(process.execPath, ['--no-warnings', script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => {
    if (child.exitCode !== null) assert.equal(child.exitCode, 0, `${role} in ${language} failed`)
    return kill(child)
  })
  return child
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

/** Waits for its end. @returns null after a signal */
export async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  return child.exitCode
}

/** What the text has in whole lines. */
export const lines = (text: string): string[] => text.split('\n').slice(0, -1)
