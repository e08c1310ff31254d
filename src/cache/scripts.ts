/** The scripts of `contract/cache/`: known to the server by their SHA-1. */
import { createHash } from 'node:crypto'
import { LUA_FILES } from './lua-files.ts'

export interface Script {
  text: string
  sha: string
  /** How many of the arguments are keys. */
  keys: number
}

function script(name: string): Script {
  const own = LUA_FILES.get(`${name}.lua`) ?? ''
  const text = own.replace(/^-- @include (\S+)$/m, (_, file: string) => LUA_FILES.get(file) ?? '')
  const keys = /^-- KEYS: (.*)$/m.exec(own)?.[1]?.split(' ') ?? []
  return { text, sha: createHash('sha1').update(text).digest('hex'), keys: keys.length }
}

export const ACQUIRE = script('acquire')
export const RENEW = script('renew')
export const RELEASE = script('release')
export const COMMIT = script('commit')
export const PUT = script('put')
export const DROP = script('drop')
export const MARKER = script('marker')
export const TABLE = script('table')
export const APPEND = script('append')
