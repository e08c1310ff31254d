/** The limits of every trial, in bytes and milliseconds of CPU time. */
export const MEMORY = 256 * 1024 ** 2
export const CPU = 1000
/** Milliseconds between two looks of the parent that watches a process. */
export const EVERY = 10
/** Milliseconds after which harm that takes no CPU time is ended by hand, as by the time limit of a job. */
export const PATIENCE = 10_000
