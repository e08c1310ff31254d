/** What stands between the request and the upstream. */
import { type CoalesceOptions, coalesce, Millpond } from '../../src/index.ts'
import { ANSWER, type Answer } from './answer.ts'
import type { ServerTally } from './messages.ts'

export interface Service {
  answer(): Promise<Answer>
  tally(): Omit<ServerTally, 'cpu'>
}
/** @param store URL of an empty store, for those who share one */
export type Serve = (upstream: string, store: string) => Promise<Service>

async function ask(upstream: string): Promise<Answer> {
  const response = await fetch(upstream)
  if (!response.ok) throw new Error(`the upstream answers ${response.status}`)
  return (await response.json()) as Answer
}

/** The ceiling of the same server. */
export const constant: Serve = async () => ({
  answer: async () => ANSWER,
  tally: () => ({ calls: 0, underWay: 0 }),
})

/** Each request makes a call of its own. */
export const plain: Serve = async (upstream) => {
  let calls = 0
  let underWay = 0
  return {
    async answer() {
      calls++
      underWay++
      try {
        return await ask(upstream)
      } finally {
        underWay--
      }
    },
    tally: () => ({ calls, underWay }),
  }
}

export const coalesced =
  (options: Pick<CoalesceOptions<string, Answer>, 'ttl'> = {}): Serve =>
  async (upstream) => {
    const answer = coalesce(ask, { key: (url) => url, ...options })
    return { answer: () => answer(upstream), tally: answer.stats }
  }

/** One flight for all processes on the store. */
export const shared =
  (options: Pick<CoalesceOptions<string, Answer>, 'ttl'> = {}): Serve =>
  async (upstream, store) => {
    const pond = await Millpond.open(store)
    const answer = coalesce(ask, { key: (url) => url, shared: pond, name: 'upstream', ...options })
    return { answer: () => answer(upstream), tally: answer.stats }
  }
