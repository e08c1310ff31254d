/** Of the reader with this number. */
export function address(n: number): string {
  return `reader-${n}@readers.example`
}
