/** Lua scripts of the contract, known to the server by their SHA-1. */
import { createHash } from 'node:crypto'

export interface Script {
  text: string
  sha: string
  /** As its line `-- KEYS:` names them, in order. */
  keys: readonly string[]
}

/**
 * @param files by name; keys may go on in the next lines behind `--` and six spaces; a line `-- @include FILE` stands
 *   for the text of that file
 * @returns gives a script by the name of its file, without `.lua`
 */
export function scriptsIn(files: ReadonlyMap<string, string>): (name: string) => Script {
  const scripts = new Map<string, Script>()
  const read = (file: string): string => {
    const text = files.get(file)
    if (text === undefined) throw new Error(`millpond: ${file} is not there`)
    return text
  }
  return (name) => {
    let script = scripts.get(name)
    if (script === undefined) {
      const own = read(`${name}.lua`)
      const text = own.replace(/^-- @include (\S+)$/gm, (_, file: string) => read(file))
      const keys = /^-- KEYS: (?!`)(.*(?:\n-- {6,}.*)*)$/m.exec(own)?.[1]?.split(/[\s-]+/) ?? []
      script = { text, sha: createHash('sha1').update(text).digest('hex'), keys }
      scripts.set(name, script)
    }
    return script
  }
}
