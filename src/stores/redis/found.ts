import type { Swept } from '../../values/operations/swept.ts'

/** What sweeps have done that no answer has told yet. */
export interface Found extends Pick<Swept, 'lost' | 'promoted' | 'expired'> {
  /** How many it has looked at, whether to forget them. */
  groups: number
  /** There are more links to settle. */
  hasLinks: boolean
  /** Of a call that was left behind, and failed then. */
  trouble?: { reason: unknown } | undefined
}

export const nothingFound = (): Found => ({ lost: [], promoted: 0, expired: 0, groups: 0, hasLinks: false })
