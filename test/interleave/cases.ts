/** What is raced: every pair of operations, and the triples of those that meet at limits, with each configuration and history. */

import type { Script } from './arena.ts'
import { CONFIGS, type Config } from './configs.ts'
import { HISTORIES, type History } from './histories.ts'
import { describe, KINDS, type Kind, type Operation, operation } from './operations.ts'

export interface Case {
  config: Config
  history: History
  kinds: readonly Kind[]
}

/** Those of the triples. */
const MEETING: readonly Kind[] = [
  'claim',
  'sleep',
  'complete',
  'push',
  'extend',
  'sweep',
  'limitGroup',
  'cancel',
  'follow',
  'signal',
  'parkLater',
]

const withRepeats = <T>(list: readonly T[], count: number): T[][] =>
  count === 0
    ? [[]]
    : list.flatMap((first, at) => withRepeats(list.slice(at), count - 1).map((rest) => [first, ...rest]))

export const PAIRS: readonly (readonly Kind[])[] = withRepeats(KINDS, 2)
/** Beside a stranger. */
export const SINGLES: readonly (readonly Kind[])[] = KINDS.map((kind) => [kind])
export const TRIPLES: readonly (readonly Kind[])[] = withRepeats(MEETING, 3)

/** Every one, in an order that the seed gives: those that come first are a fair sample. */
export function casesOf(sets: readonly (readonly Kind[])[], random: () => number): Case[] {
  const cases = sets.flatMap((kinds) =>
    CONFIGS.flatMap((config) => HISTORIES.map((history) => ({ config, history, kinds }))),
  )
  for (let at = cases.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const [one, two] = [cases[at], cases[other]]
    if (one === undefined || two === undefined) continue
    cases[at] = two
    cases[other] = one
  }
  return cases
}

const pick = <T>(list: readonly [T, ...T[]], random: () => number): T =>
  list[Math.floor(random() * list.length)] ?? list[0]

/** Of kinds that do little where no time has passed. */
const WAITS: Partial<Record<Kind, readonly [number, ...number[]]>> = {
  sweep: [1100, 600, 31_000],
  requeueUntil: [100, 600, 1100],
}

/** An operation of that kind, with what it is about by chance. */
export function some(kind: Kind, random: () => number): Operation {
  return operation(kind, {
    wait: pick(WAITS[kind] ?? [0, 0, 0, 100, 600, 1100], random),
    group: pick(['a', 'b', 'c'], random),
    priority: pick([2, 4, 8], random),
    limit: pick([1, 2, 40], random),
    running: pick([null, 1, 2, 3], random),
  })
}

export const describeScript = ({ operations, stop, row, stranger }: Script): string =>
  row === true || stranger !== undefined
    ? (stranger && `a stranger: ${stranger}`) || 'a held row'
    : `${operations.map(describe).join(', ')}${stop === undefined ? '' : ` (stops ${stop.when} ${stop.statement})`}`
