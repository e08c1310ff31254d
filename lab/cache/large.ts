/** A value of 600 MB, more than one string of Redis holds: one process puts it in, another gets it out, and both say what that took. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const role = fileURLToPath(new URL('large-role.ts', import.meta.url))
const MB = 1e6

export interface Part {
  seconds: number
  /** The most that the process had in memory, in bytes, and what it had before. */
  peak: number
  before: number
  hash: string
  bytes: number
}

async function part(what: 'put' | 'get', redis: string): Promise<Part> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--disable-warning=MillpondWarning',
    role,
    what,
    redis,
  ])
  return JSON.parse(stdout) as Part
}

export async function large(redis: string): Promise<{ put: Part; get: Part; intact: boolean; text: string }> {
  const put = await part('put', redis)
  const get = await part('get', redis)
  const intact = put.hash === get.hash && put.bytes === get.bytes
  const said = ({ seconds, peak, before }: Part) =>
    `${seconds.toFixed(1)} s, peak ${Math.round(peak / MB)} MB (${Math.round(before / MB)} MB before it began)`
  const text = `A value of ${Math.round(put.bytes / MB)} MB: put in ${said(put)}; got in ${said(get)}; ${intact ? 'intact' : 'NOT INTACT'}.`
  return { put, get, intact, text }
}
