/** What an experiment does with the table of its variants, which it calls by their names. */
export function byName<Name extends string, Variant>(variants: Readonly<Record<Name, Variant>>) {
  const isVariant = (name: string): name is Name => Object.hasOwn(variants, name)
  return { NAMES: Object.keys(variants).filter(isVariant), isVariant, variant: (name: Name): Variant => variants[name] }
}
