/** What stands between the request and the row. Each variant is one file in `services/`. */

/** Where a run finds its servers, with nothing in them but the table. */
export interface Places {
  postgres: string
  redis: string
}

export interface Service {
  /** Resolves, to what the `202` tells, once the name is safe where the variant keeps it. */
  accept(name: string): Promise<string | number>
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
