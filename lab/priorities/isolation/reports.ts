/** The handler: it writes down that it ran. One report outgrows any memory. */
import { appendFileSync } from 'node:fs'
import type { Job } from '../../../src/index.ts'

export interface Report {
  n: number
  /** Of this file, for each run a line. */
  log: string
  grows: boolean
}

export default ({ data }: Pick<Job<Report>, 'data'>): void => {
  if (data.grows) grow()
  appendFileSync(data.log, `${data.n}\n`)
}

function grow(): never {
  const kept: number[][] = []
  for (;;) kept.push(Array.from({ length: 100_000 }, (_, n) => n + 0.5))
}
