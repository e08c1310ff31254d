/**
 * A Python with the packages of `python/requirements.txt`, in `python/.venv`. It is made once, and anew when the requirements change.
 * Debian's Python may come without `ensurepip`: then its own pip puts the packages into a folder instead.
 */

import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { install, mayInstall } from '../servers/install.ts'

const execute = promisify(execFile)

export const PYTHON_FOLDER = fileURLToPath(new URL('../../python', import.meta.url))
const REQUIREMENTS = join(PYTHON_FOLDER, 'requirements.txt')
const PLACE = join(PYTHON_FOLDER, '.venv')
const OLDEST = '3.11'

export interface Python {
  program: string
  /** To be added to the environment of its processes. */
  variables: Record<string, string>
}

interface Made {
  /** In the folder that was made, or anywhere. */
  program: string
  /** Where the packages are; '' if the program knows. */
  packages: string
  requirements: string
}

export async function pythonEnvironment(): Promise<Python> {
  const requirements = createHash('sha256')
    .update(await readFile(REQUIREMENTS))
    .digest('hex')
  return (await known(requirements)) ?? (await make(requirements))
}

async function known(requirements: string): Promise<Python | undefined> {
  try {
    const made: Made = JSON.parse(await readFile(join(PLACE, 'made.json'), 'utf8'))
    if (made.requirements !== requirements) return undefined
    const python = inPlace(made)
    await execute(python.program, ['-c', 'import pytest'], { env: { ...process.env, ...python.variables } })
    return python
  } catch {
    return undefined
  }
}

function inPlace({ program, packages }: Made): Python {
  const path = packages === '' ? PYTHON_FOLDER : `${PYTHON_FOLDER}:${join(PLACE, packages)}`
  return {
    program: packages === '' ? join(PLACE, program) : program,
    variables: { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' },
  }
}

/** Beside its place, so that an environment that was made in part is never taken for a whole one. */
async function make(requirements: string): Promise<Python> {
  const folder = `${PLACE}-${randomUUID()}`
  try {
    const made = { ...(await fill(await findPython(), folder)), requirements }
    await writeFile(join(folder, 'made.json'), JSON.stringify(made))
    try {
      await rename(folder, PLACE)
    } catch (error) {
      // Another process has made the same one, and its programs may run by now. Else it is of other requirements.
      const other = await known(requirements)
      if (other !== undefined) return other
      if (!existsSync(PLACE)) throw error
      await rm(PLACE, { recursive: true, force: true })
      await rename(folder, PLACE)
    }
    return inPlace(made)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function fill(python: string, folder: string): Promise<Omit<Made, 'requirements'>> {
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS]
  try {
    await execute(python, ['-m', 'venv', folder])
    await execute(join(folder, 'bin/python'), pip)
    return { program: 'bin/python', packages: '' }
  } catch (error) {
    // The requirements themselves could not be installed.
    if (existsSync(join(folder, 'bin/pip'))) throw error
  }
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, 'packages'), { recursive: true })
  await execute(python, [...pip, '--target', join(folder, 'packages')])
  return { program: python, packages: 'packages' }
}

async function findPython(): Promise<string> {
  const python = (await usable()) ?? (mayInstall() ? await installed() : undefined)
  if (python !== undefined) return python
  throw new Error(
    `Python ${OLDEST} or later is not in the PATH: install it (apt-get install python3-venv), or set MILLPOND_TEST_PYTHON to its program. ` +
      'The Python stores cannot be tested without it.',
  )
}

async function installed(): Promise<string | undefined> {
  const trouble = await install('python3-venv')
  if (trouble !== '') process.stderr.write(`${trouble}\n`)
  return usable()
}

async function usable(): Promise<string | undefined> {
  const check = `import sys; sys.exit(sys.version_info < (${OLDEST.replace('.', ', ')}))`
  for (const program of [process.env.MILLPOND_TEST_PYTHON, 'python3', 'python3.13', 'python3.12', 'python3.11']) {
    if (program === undefined) continue
    try {
      await execute(program, ['-c', check])
      return program
    } catch {
      // Not there, or too old.
    }
  }
  return undefined
}
