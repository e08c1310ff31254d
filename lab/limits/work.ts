/** What every worker here does: its jobs note when they start, and answer as they are told. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Millpond, QueueOptions } from '../../src/index.ts'
import { holds } from '../child.ts'
import { machineTime } from '../clock.ts'

export const QUEUE = 'limited'

export interface Work {
  queue: QueueOptions
  concurrency: number
  /** How long a handler takes, in ms; 0: it returns at once. */
  takes: number
  /** Groups whose starts are noted; none of them: all. Unset: nothing is noted. */
  noted?: readonly string[]
}

/** The data of a job: null, or for how long, in ms, no other shall start. */
export type Data = number | null

/** Times in ms, by a clock that is the same for all processes. */
export interface Notes {
  starts: { at: number; group: string }[]
  /** When a handler had answered with `ctx.rateLimited`, and for how long. */
  pauses: { at: number; ms: number }[]
  /** When the store had taken them, each. */
  taken: number[]
}

export const isNotes = holds<Notes>('starts', 'pauses')

/** @returns what is noted from now on */
export function work(pond: Millpond, { queue, concurrency, takes, noted }: Work): Notes {
  const notes: Notes = { starts: [], pauses: [], taken: [] }
  pond.on('rateLimited', () => notes.taken.push(machineTime()))
  const isNoted = (group: string) => noted !== undefined && (noted.length === 0 || noted.includes(group))
  pond.queue<Data>(QUEUE, queue).work(
    async ({ data, group }, ctx) => {
      const name = group ?? ''
      if (isNoted(name)) notes.starts.push({ at: machineTime(), group: name })
      if (takes > 0) await sleep(takes)
      if (data === null) return
      notes.pauses.push({ at: machineTime(), ms: data })
      return ctx.rateLimited(data)
    },
    { concurrency },
  )
  return notes
}
