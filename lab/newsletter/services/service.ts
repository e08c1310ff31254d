import type { Context } from 'hono'

/** Of a queue in the server's own process, and of its workers. */
export interface Bounds {
  size: number
  workers: number
}

/** What the variants have in common: `server.ts` puts each behind the same route. */
export interface Service {
  /** `POST /register`, with an address that looks like one. */
  register(email: string, c: Context): Response | Promise<Response>
  /** Mails that wait to be sent, and mails under way. */
  backlog(): Backlog | Promise<Backlog>
  /** The state of a registration, where the service can tell. */
  state?(id: string): Promise<unknown>
}

export interface Backlog {
  waiting: number
  running: number
}
