/** What stands between the request and the row. Each variant is one file in `services/`. */

/** Where a run finds its stores, with nothing in them but the table. */
export interface Places {
  postgres: string
  redis: string
  sqlite: string
  /** Clients ask what became of their requests. */
  followed: boolean
  /** Of the library; this one, unless it is measured beside another. */
  checkout: string
}

export interface Service {
  /** Resolves, to what the `202` tells, once the name is safe where the variant keeps it. */
  accept(name: string): Promise<string | number>
  /** Answers `GET /users/:id`, by which a client follows its request. */
  follow?(request: Request): Promise<Response>
}
/** From a server, when asked: how many it has answered with `202`, and when the last, in ms of the machine's clock. */
export interface Tally {
  accepted: number
  last: number
}

/** In the server's process. */
export type Serve = (places: Places) => Promise<Service>
/** Takes what the server has queued to the table, in whichever process it is started. */
export type Consume = (places: Places) => Promise<void>

/** As arguments of a process: the variant and its places. */
export const argumentsOf = (variant: string, places: Places): string[] => [variant, JSON.stringify(places)]

export function placesFrom(text = ''): Places {
  const given: unknown = JSON.parse(text)
  if (typeof given !== 'object' || given === null || !('postgres' in given)) throw new Error(`no places: ${text}`)
  const { postgres, redis, sqlite, followed, checkout } = given as Places
  return { postgres, redis, sqlite, followed, checkout }
}
