/** The limits of every trial, and how often they are looked at: bytes and milliseconds. */
export const MEMORY = 256 * 1024 ** 2
export const CPU = 1000
export const EVERY = 10
/** Without an end after so long, a harm is not contained by limits: then it is ended by hand. */
export const PATIENCE = 5000
