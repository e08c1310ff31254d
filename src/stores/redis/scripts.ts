/**
 * The scripts of `contract/redis/`: read once, known to the server by their SHA-1.
 * A line `-- @include FILE` at the top stands for that file's text; `-- KEYS:` names the keys in order, `fresh` standing for ten.
 */
import { createHash } from 'node:crypto'
import { CONTRACT } from './contract.ts'

export type ScriptName =
  | 'cancel'
  | 'claim'
  | 'complete'
  | 'configure'
  | 'extend'
  | 'fail'
  | 'find'
  | 'list'
  | 'listed'
  | 'push'
  | 'record'
  | 'register'
  | 'release'
  | 'remove'
  | 'requeue'
  | 'stats'
  | 'sweep'
  | 'unregister'

export interface Script {
  name: ScriptName
  text: string
  sha: string
  /** By the last part of their names, such as `jobs` or `fresh:4`. */
  keys: readonly string[]
}

function read(file: string): string {
  const text = CONTRACT.get(file)
  if (text === undefined) throw new Error(`millpond: contract/redis/${file} is not there`)
  return text
}

function load(name: ScriptName): Script {
  const text = read(`${name}.lua`).replace(/^-- @include (\S+)$/gm, (_, file: string) => read(file))
  const named = /^-- KEYS: (?!`)(.*)$/m.exec(read(`${name}.lua`))?.[1] ?? ''
  const keys = named
    .split(' ')
    .flatMap((key) => (key === 'fresh' ? Array.from({ length: 10 }, (_, priority) => `fresh:${priority}`) : [key]))
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
