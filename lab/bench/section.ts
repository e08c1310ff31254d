/** A part of a run that can be asked for by name; each is one file in `sections/`, and yields its tables as they come. */
import type { Stage } from '../experiment.ts'
import { type Options, on, positive, some, whole } from '../flags.ts'
import type { Comparison } from './row.ts'

const flags = {
  runs: whole('times that every measurement is made, each in a fresh process', '5', '2'),
  backlog: whole('jobs in the large backlog', '10M', '200k'),
  minutes: positive('of load while an old transaction is open', '5', '0.25'),
  fsync: on('Redis with appendfsync always; unless given, without persistence'),
}
export const flagsFor = <Name extends string>(names: readonly Name[]) => ({ only: some(names), ...flags })

export type SectionOptions = Options<typeof flags>
export type Section = (options: SectionOptions, stage: Stage) => AsyncGenerator<Comparison, void>
