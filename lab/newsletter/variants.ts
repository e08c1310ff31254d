/** The three rows of the table. */
import { WORKERS } from './settings.ts'

export interface Variant {
  /** As `server.ts` knows it. */
  key: 'plain' | 'array' | 'millpond'
  title: string
  story: string
  /** What gets the SIGKILL: the process that holds the mails still to be sent. */
  kills: 'nothing' | 'server' | 'worker'
  /** Whether every accepted mail must arrive; the array is here to show what it loses. */
  promises: boolean
}

export const VARIANTS: readonly Variant[] = [
  { key: 'plain', title: 'Plain handler', story: 'the answer waits for the mail', kills: 'nothing', promises: true },
  {
    key: 'array',
    title: 'Queue in memory',
    story: `an array and ${WORKERS} workers in the server; kill -9 midway`,
    kills: 'server',
    promises: false,
  },
  {
    key: 'millpond',
    title: 'Millpond, SQLite',
    story: 'a queue on the disk and a worker process; kill -9 midway',
    kills: 'worker',
    promises: true,
  },
]
