/** What an experiment does with the table of its variants, which it calls by their names. */
export function byName<Name extends string, Variant>(variants: Readonly<Record<Name, Variant>>) {
  const isName = (name: string): name is Name => Object.hasOwn(variants, name)
  /** Also for a child, which has the name as an argument. */
  const variant = (name: string): Variant => {
    if (!isName(name)) throw new Error(`no variant is named ${name}`)
    return variants[name]
  }
  return { NAMES: Object.keys(variants).filter(isName), variant }
}
