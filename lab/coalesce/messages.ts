/** What the processes tell when they are asked, of all that they have done so far. */
import { holds } from '../child.ts'

export interface ServerTally {
  /** Calls of the upstream that this process has made; with `coalesce` as its `stats` say. */
  calls: number
  /** Flights, or calls, that somebody in this process waits for. */
  underWay: number
  /** CPU time of the process, in µs. */
  cpu: number
}

export interface UpstreamTally {
  calls: number
  /** Not answered yet. */
  open: number
  /** The most that there were at once. */
  atOnce: number
  /** From a call to its answer, the median; NaN without calls, which arrives as null. */
  ms: number | null
}

export const isServerTally = holds<ServerTally>('calls', 'underWay', 'cpu')
export const isUpstreamTally = holds<UpstreamTally>('calls', 'open', 'atOnce')
