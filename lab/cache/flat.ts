/** A nested value as the fields of a hash, their names joined by dots, and back. */

type Leaf = string | number | boolean
/** Arrays are objects whose names are numbers. */
interface Nesting {
  [name: string]: Leaf | Nesting
}

/** Names and texts in turn. */
export function flattened(value: object, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, item]) =>
    typeof item === 'object' ? flattened(item, `${prefix}${name}.`) : [prefix + name, String(item)],
  )
}

/** Its leaves are texts. */
export function unflattened(fields: Readonly<Record<string, string>>): Nesting {
  const root: Nesting = {}
  for (const [path, text] of Object.entries(fields)) {
    const names = path.split('.')
    const last = names.pop() ?? ''
    let at = root
    for (const name of names) {
      at[name] ??= {}
      const next = at[name]
      if (typeof next !== 'object') throw new Error(`${path}: a name is below a text`)
      at = next
    }
    at[last] = text
  }
  return root
}
