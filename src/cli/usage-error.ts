/** A wrong call of the program: its message names the option, and shows no value that may be secret. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
