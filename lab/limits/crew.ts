/** The workers on a queue: processes, or one in this process if the store is this process's memory. */
import { Millpond } from '../../src/index.ts'
import { Child } from '../child.ts'
import { isNotes, type Notes, QUEUE, type Work, work } from './work.ts'

const SCRIPT = new URL('worker.ts', import.meta.url)

export class Crew {
  readonly #own: Notes | undefined
  readonly #children: readonly Child[]

  private constructor(own: Notes | undefined, children: readonly Child[]) {
    this.#own = own
    this.#children = children
  }

  static async start(pond: Millpond, url: string, processes: number, settings: Work): Promise<Crew> {
    if (url === 'memory:') return new Crew(work(pond, settings), [])
    const args = [url, JSON.stringify(settings)]
    return new Crew(undefined, await Promise.all(Array.from({ length: processes }, () => Child.start(SCRIPT, args))))
  }

  /** Of all processes, in the order of time. */
  async notes(): Promise<Notes> {
    const all = await Promise.all(this.#children.map((child) => child.tell(isNotes)))
    if (this.#own !== undefined) all.push(this.#own)
    return {
      starts: all.flatMap(({ starts }) => starts).sort((a, b) => a.at - b.at),
      pauses: all.flatMap(({ pauses }) => pauses).sort((a, b) => a.at - b.at),
      taken: all.flatMap(({ taken }) => taken).sort((a, b) => a - b),
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()))
  }
}

/** A pond on the URL and its workers, for as long as the measurement takes. */
export async function withPond<T>(url: string, measure: (pond: Millpond) => Promise<T>): Promise<T> {
  const pond = await Millpond.open(url)
  try {
    return await measure(pond)
  } finally {
    await pond.close({ timeout: 0 })
  }
}

export async function withCrew<T>(
  pond: Millpond,
  url: string,
  processes: number,
  settings: Work,
  measure: (crew: Crew) => Promise<T>,
): Promise<T> {
  const crew = await Crew.start(pond, url, processes, settings)
  try {
    return await measure(crew)
  } finally {
    await crew.stop()
  }
}

/** Until no job waits or runs. */
export async function drained(pond: Millpond): Promise<void> {
  const queue = pond.queue(QUEUE)
  for (;;) {
    const { counts } = await queue.stats()
    if (counts.waiting + counts.running + counts.scheduled === 0) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
