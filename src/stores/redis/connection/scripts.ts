/**
 * The scripts of `contract/redis/`: read once, known to the server by their SHA-1.
 * A line `-- @include FILE` at the top stands for that file's text; `-- KEYS:` names the keys in order.
 */
import { createHash } from 'node:crypto'
import { LUA_FILES } from '../lua-files.ts'

/** A file of `contract/redis/`, without `.lua`. */
export type ScriptName = string

export interface Script {
  name: ScriptName
  text: string
  sha: string
  /** The last parts of their names, such as `jobs`; with `@`: of the hash tag, not of the partition. */
  keys: readonly string[]
}

function read(file: string): string {
  const text = LUA_FILES.get(file)
  if (text === undefined) throw new Error(`millpond: contract/redis/${file} is not there`)
  return text
}

function load(name: ScriptName): Script {
  const own = read(`${name}.lua`)
  const text = own.replace(/^-- @include (\S+)$/gm, (_, file: string) => read(file))
  const keys = /^-- KEYS: (?!`)(.*)$/m.exec(own)?.[1]?.split(' ') ?? []
  return { name, text, sha: createHash('sha1').update(text).digest('hex'), keys }
}

const scripts = new Map<ScriptName, Script>()

export function scriptOf(name: ScriptName): Script {
  let script = scripts.get(name)
  if (script === undefined) {
    script = load(name)
    scripts.set(name, script)
  }
  return script
}
