/** Large calls take longer than small ones, and so do those that are sent behind them on the same connection. */

/** Bytes that a slow network takes in a millisecond: 2 Mbit/s. */
const BYTES_PER_MS = 250

/** Milliseconds that a call gets beyond its timeout. @param bytes of all that is under way on its connection */
export const extraTime = (bytes: number): number => Math.floor(bytes / BYTES_PER_MS)

export const bytesOf = (args: readonly (string | Buffer | number)[]): number =>
  args.reduce<number>((sum, arg) => sum + (typeof arg === 'number' ? 8 : arg.length), 0)
