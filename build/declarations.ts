/**
 * The declarations of the package: of all that the compiler writes, what the entry points export, and what that refers to.
 *
 *   an entry's exports ──► their declarations ──names in them──► further ones, of that module or imported
 *
 * It reads the text, which comes from one compiler: a statement begins with a keyword at the start of a line.
 */
import { posix } from 'node:path'

interface Statement {
  kind: 'import' | 'from' | 'declaration'
  /** With its comment. */
  text: string
  /** Without. */
  code: string
  /** What is imported or exported, by the name in this module; of a declaration, its own name. */
  names: ReadonlyMap<string, string>
  /** Of an import. */
  path: string
}

const START = /(?:export|declare|import|interface|type|class|const|function|enum|abstract)\b/
const NAME = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|const|let|function|enum) (\w+)/
const COMMENT = /\/\*[\s\S]*?\*\/\s*/g

export const withoutComments = (text: string): string => text.replace(COMMENT, '')

/** @throws where a statement is not understood, so that nothing is left out */
function statementsOf(text: string, file: string): Statement[] {
  // A comment before a statement belongs to it; one inside a type may be at the start of a line as well.
  const texts = text.split(new RegExp(`(?<!\\*/)\\n(?=(?:/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?${START.source})`))
  return texts.flatMap((each): Statement[] => {
    const code = withoutComments(each).trim()
    if (code === '' || code === 'export {};') return []
    const listed = /^(import|export)(?: type)? \{([^}]*)\}(?: from '([^']+)')?;$/.exec(code)
    if (listed) {
      const [, keyword, names = '', from = ''] = listed
      const kind = keyword === 'import' ? 'import' : 'from'
      return [{ kind, text: each.trim(), code, names: namesIn(names, kind === 'import'), path: pathFrom(file, from) }]
    }
    // For what it does when it is loaded.
    if (/^import '[^']+';$/.test(code)) return []
    const name = NAME.exec(code)?.[1]
    if (name === undefined) throw new Error(`${file}: ${code.split('\n')[0]}`)
    return [{ kind: 'declaration', text: each.trim(), code, names: new Map([[name, name]]), path: '' }]
  })
}

/** `a, type b as c` by the name here. */
function namesIn(list: string, isImport: boolean): Map<string, string> {
  const entries = list.split(',').flatMap((each): [string, string][] => {
    const [name, alias = name] = each
      .trim()
      .replace(/^type /, '')
      .split(' as ')
    return name ? [isImport ? [alias ?? '', name] : [alias ?? '', name]] : []
  })
  return new Map(entries)
}

const pathFrom = (file: string, path: string): string =>
  path.startsWith('.') ? posix.join(posix.dirname(file), path.replace(/\.[jt]s$/, '.d.ts')) : path

export class Declarations {
  readonly #read: (file: string) => string
  readonly #modules = new Map<string, Statement[]>()
  /** By file: the statements that stay. Of a list of names, those that do. */
  readonly #kept = new Map<string, Map<Statement, Set<string>>>()

  /** @param read the text of a file, as the compiler wrote it; files are such as `web/node.d.ts` */
  constructor(entries: readonly string[], read: (file: string) => string) {
    this.#read = read
    for (const entry of entries) for (const name of this.exportsOf(entry)) this.#keep(entry, name)
  }

  /** The names that a module exports, sorted. */
  exportsOf(file: string): string[] {
    const exported = this.#module(file).filter(({ kind, code }) => kind === 'from' || code.startsWith('export '))
    return exported.flatMap(({ names }) => [...names.keys()]).sort()
  }

  /** The files, with what stays of each. */
  *files(): Generator<[file: string, text: string]> {
    for (const [file, kept] of this.#kept) {
      const statements = this.#module(file).filter((each) => kept.has(each))
      const code = statements.filter(({ kind }) => kind === 'declaration').map((each) => each.code)
      const used = new Set(code.join('\n').match(/\w+/g))
      const imports = this.#module(file).filter(({ kind }) => kind === 'import')
      const heads = [
        ...imports.map((each) => listed(each, (name) => used.has(name))),
        ...statements
          .filter(({ kind }) => kind === 'from')
          .map((each) => listed(each, (name) => kept.get(each)?.has(name))),
      ]
      const bodies = statements.filter(({ kind }) => kind === 'declaration').map((each) => js(each.text))
      yield [file, `${[...heads.filter((each) => each !== ''), ...bodies, 'export {};'].join('\n')}\n`]
    }
  }

  /** The declarations that stay, without comments. */
  kept(): { file: string; code: string }[] {
    return [...this.#kept].flatMap(([file, kept]) => {
      const declared = [...kept.keys()].filter(({ kind }) => kind === 'declaration')
      return declared.map(({ code }) => ({ file, code }))
    })
  }

  #module(file: string): Statement[] {
    const known = this.#modules.get(file) ?? statementsOf(this.#read(file), file)
    this.#modules.set(file, known)
    return known
  }

  #keep(file: string, name: string): void {
    const statements = this.#module(file).filter(({ kind, names }) => kind !== 'import' && names.has(name))
    if (statements.length === 0) throw new Error(`${file} does not declare ${name}`)
    const kept = this.#kept.get(file) ?? new Map<Statement, Set<string>>()
    this.#kept.set(file, kept)
    for (const statement of statements) {
      const names = kept.get(statement) ?? new Set()
      if (names.has(name)) continue
      kept.set(statement, names.add(name))
      if (statement.kind === 'from') this.#keep(statement.path, statement.names.get(name) ?? name)
      else this.#keepWhatItNames(file, statement.code)
    }
  }

  #keepWhatItNames(file: string, code: string): void {
    for (const [, path = '', name = ''] of code.matchAll(/import\("([^"]+)"\)\.(\w+)/g)) {
      if (path.startsWith('.')) this.#keep(pathFrom(file, path), name)
    }
    for (const name of new Set(code.match(/\w+/g))) {
      for (const { kind, names, path } of this.#module(file)) {
        const original = names.get(name)
        if (original === undefined || kind === 'from') continue
        if (kind === 'declaration') this.#keep(file, name)
        else if (path.endsWith('.d.ts')) this.#keep(path, original)
      }
    }
  }
}

/** An import or export of those of its names that stay; empty: none does. */
function listed({ code }: Statement, stays: (name: string) => boolean | undefined): string {
  return js(
    code.replace(/\{([^}]*)\}/, (_, list: string) => {
      const names = list.split(',').map((each) => each.trim())
      return `{ ${names.filter((each) => each !== '' && stays(each.replace(/^type |^.* as /g, ''))).join(', ')} }`
    }),
  ).replace(/^.*\{ {2}\}.*$/, '')
}

/** Every compiler finds the declarations of a `.js`. */
export const js = (text: string): string => text.replace(/((?:from |import\()['"]\.[^'"]+)\.ts(['"])/g, '$1.js$2')
