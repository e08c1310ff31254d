/** The experiment's value. */
export interface Item {
  index: number
  createdAt: number
  nested: { isEven: boolean }
}

export function items(count: number): Item[] {
  return Array.from({ length: count }, (_, index) => ({
    index,
    createdAt: Date.now(),
    nested: { isEven: index % 2 === 0 },
  }))
}
