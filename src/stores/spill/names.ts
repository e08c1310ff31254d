/**
 * Names of queues in the durable store. What a queue spills is there under the queue's own name. What a process had in
 * memory when it closed comes before that, so it is in a queue of its own, the front: a store gives the jobs that it
 * takes in places behind all others.
 */

const FRONT = '.spill-front'
/** Most characters of a queue's name. */
const LONGEST = 128

/** @returns the queue itself where the name would be too long: then the jobs go behind those that were spilled */
export const frontOf = (queue: string): string => (queue.length + FRONT.length <= LONGEST ? queue + FRONT : queue)

export const isFront = (name: string): boolean => name.endsWith(FRONT)

/** The queue that a queue of the durable store belongs to. */
export const ownerOf = (name: string): string => (isFront(name) ? name.slice(0, -FRONT.length) : name)
