/** Of a call about several jobs that was rejected because one of several stores is away: what the others have answered. */
const answers = new WeakMap<object, readonly unknown[]>()

/** @throws the error */
export function answeredBeside(error: unknown, found: readonly unknown[]): never {
  if (typeof error === 'object' && error !== null) answers.set(error, found)
  throw error
}

/** By place of the input; null: unknown, or in the store that is away. Undefined: nothing was answered. */
export function answersBeside<T>(error: unknown): readonly (T | null)[] | undefined {
  // Whoever asks knows what it has asked for.
  return typeof error === 'object' && error !== null ? (answers.get(error) as readonly (T | null)[]) : undefined
}
