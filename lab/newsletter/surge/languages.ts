/** Go and Python as the experiment needs them. What is not there leaves its variants out. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Python, pythonEnvironment } from '../../../test/python/environment.ts'
import { freshFolder } from '../../data.ts'
import { programOf } from '../../setup.ts'
import type { Command } from './program.ts'

const execute = promisify(execFile)
const GO = fileURLToPath(new URL('../go', import.meta.url))
const PYTHON = fileURLToPath(new URL('../python', import.meta.url))

let built: string | undefined
let environment: Python | undefined

/** Builds the program. @returns the version */
export async function buildGo(): Promise<string> {
  const go = programOf('go')
  if (go === undefined) throw new Error('Go is not installed: apt-get install golang-go')
  const program = join(freshFolder(), 'newsletter')
  await execute(go, ['build', '-o', program, '.'], { cwd: GO })
  built = program
  const { stdout } = await execute(go, ['version'])
  return /go([\d.]+)/.exec(stdout)?.[1] ?? 'unknown'
}

/** Makes `python/.venv` where it is not there. @returns the version */
export async function preparePython(): Promise<string> {
  environment = await pythonEnvironment()
  const { stdout } = await execute(environment.program, ['--version'])
  return stdout.trim().split(' ')[1] ?? 'unknown'
}

export function goProgram(): string {
  if (built === undefined) throw new Error('the Go program was not built')
  return built
}

export function pythonProgram(args: readonly string[]): Command {
  if (environment === undefined) throw new Error('Python was not prepared')
  return {
    name: 'newsletter in Python',
    command: environment.program,
    args: [join(PYTHON, 'newsletter.py'), ...args],
    environment: environment.variables,
  }
}
