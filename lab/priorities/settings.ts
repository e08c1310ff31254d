/** What experiment E5 fixes. */

/** The consumers: slots of so many processes, which all take both kinds of jobs. */
export const PROCESSES = 2
export const SLOTS = 2
/** How long a short job takes, in ms. */
export const SHORT = 50
/** Priorities of the two kinds. */
export const LONG_PRIORITY = 4
export const URGENT_PRIORITY = 7
/** Slots of each process that only urgent jobs may hold, where a variant has a lane. */
export const RESERVE = 1
/** Pause between two urgent jobs, in ms, drawn at random. Longer than a short job takes, so that no urgent job waits for another one. */
export const GAP = { least: 100, most: 400 }
/** An urgent job that waits longer counts as delayed, in ms. */
export const DELAYED = 50
