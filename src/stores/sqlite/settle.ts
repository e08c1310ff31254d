/**
 * What becomes of the children of jobs that have ended: contract/sqlite/graphs.sql. A queue without graphs runs nothing of this.
 *
 *   ended ── up to `graph.step` links ──► closed, in the same commit ──► children released, or cancelled, which ends them, too
 *     └────── the links beyond ──► millpond_ended ── sweeps, as many at a time ──┘
 */

import { parentFailed } from '../../values/jobs/parent-failed.ts'
import type { FinalState } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import type { Statements } from './connection/statements.ts'
import { flag, integer, type Row, text, textOrNull } from './connection/values.ts'
import { letFollow } from './once.ts'
import type { Queue, StoreContext } from './queues.ts'

const STEP = DEFAULTS.graph.step
/** Entries of millpond_ended that a sweep looks at. */
const MOST_ENDED = 100

/** `removed`: it was live. `gone`: it was not, and its links go with it. */
type End = FinalState | 'removed' | 'gone'

/** A job that has ended: its links to the children with `after` < seq <= `until`. */
export interface Ended {
  parent: number
  id: string
  end: End
  /** Its row is not there any more. */
  isGone: boolean
  after: number
  until: number
}

const ALL = { after: 0, until: Number.MAX_SAFE_INTEGER }

/** How many links an operation may still settle. */
interface Budget {
  left: number
}

const newBudget = (): Budget => ({ left: STEP })

/** The jobs that a call ends or removes. They are settled after the last of them. */
export class Endings {
  readonly #context: StoreContext
  readonly #linked = new Map<string, Row>()
  readonly #ended: Ended[] = []
  readonly #gone: number[] = []

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** Before jobs end or are removed, as long as they are there. */
  look(queue: Queue | undefined, ids: readonly string[]): void {
    if (!queue?.settings.usesGraphs) return
    const rows = this.#context.statements.all('graphs/linked', { ids: JSON.stringify(ids) })
    for (const row of rows) this.#linked.set(text(row.id), row)
  }

  /** Its place, if it has children. */
  parent(id: string): number | undefined {
    const row = this.#linked.get(id)
    return row !== undefined && flag(row.has_children) ? integer(row.seq) : undefined
  }

  /** @param isKept whether its row stays */
  ended(id: string, state: FinalState, isKept: boolean): void {
    this.#end(id, state, !isKept)
  }

  removed(id: string, wasLive: boolean): void {
    this.#end(id, wasLive ? 'removed' : 'gone', true)
  }

  /** Jobs that have ended, as `cancelChildren` gives them. */
  add(ended: readonly Ended[]): void {
    this.#ended.push(...ended)
  }

  #end(id: string, end: End, isGone: boolean): void {
    const row = this.#linked.get(id)
    if (row === undefined) return
    this.#linked.delete(id)
    const parent = integer(row.seq)
    if (isGone && flag(row.has_parents)) this.#gone.push(parent)
    if (!flag(row.has_children)) return
    const ended = { parent, id, end, isGone, ...ALL }
    // What an earlier end has left is to be settled before.
    if (flag(row.pending) && end !== 'gone') later(this.#context, ended)
    else this.#ended.push(ended)
  }

  /** Once the states of all have changed, or their rows are gone. */
  settle(): void {
    forgetChildren(this.#context, this.#gone.splice(0))
    for (const rest of settle(this.#context, this.#ended.splice(0), newBudget())) later(this.#context, rest)
  }
}

/** The rest is left for sweeps. */
function later({ statements }: StoreContext, { parent, id, end: state, after, until }: Ended): void {
  statements.run('graphs/later', { parent, id, state, after, until })
}

/** A part of what endings have left. @returns whether there is more */
export function settleRest(context: StoreContext): boolean {
  const { statements } = context
  const rows = statements.all('graphs/ended', { limit: MOST_ENDED })
  if (rows.length === 0) return false
  const numbers = new Map<Ended, number>()
  for (const row of rows) numbers.set(endedFrom(row), integer(row.number))
  for (const rest of settle(context, [...numbers.keys()], newBudget())) {
    const number = numbers.get(rest)
    if (number === undefined) later(context, rest)
    else statements.run('graphs/go_on', { number, after: rest.after })
    numbers.delete(rest)
  }
  for (const number of numbers.values()) statements.run('graphs/settled', { number })
  return statements.get('graphs/ended', { limit: 1 }) !== undefined
}

const ENDS: readonly End[] = ['done', 'dead', 'cancelled', 'removed', 'gone']

const endedFrom = (row: Row): Ended => ({
  ...{ parent: integer(row.parent), id: text(row.id), end: ENDS.find((end) => end === row.state) ?? 'gone' },
  ...{ isGone: flag(row.gone), after: integer(row.after), until: integer(row.until) },
})

/** @returns what of them, and of children that were cancelled, is left; those of the input as they are, but for `after` */
function settle(context: StoreContext, ended: readonly Ended[], budget: Budget): Ended[] {
  let rest = [...ended]
  while (rest.length > 0 && budget.left > 0) {
    const { looked, left, links } = look(context, rest, budget)
    rest = [...left, ...close(context, looked, links)]
  }
  return rest
}

interface Link {
  of: Ended
  child: number
  open: number
}

type Range = readonly [parent: number, after: number, until: number, id: string]

/** `looked`: the ranges whose links were looked at, all of them. `left`: those of which more links may be left. */
function look({ statements }: StoreContext, ended: readonly Ended[], budget: Budget) {
  const ranges = ended.map(({ parent, after, until, id }): Range => [parent, after, until, id])
  const limit = budget.left
  const rows = statements.all('graphs/children', { ended: JSON.stringify(ranges), limit })
  budget.left -= rows.length
  const links = rows.flatMap(({ at, child, open }): Link[] => {
    const of = ended[integer(at)]
    return of === undefined ? [] : [{ of, child: integer(child), open: integer(open) }]
  })
  const looked = new Map(ended.map((of, at) => [of, ranges[at] as Range]))
  const last = rows.length < limit ? undefined : links.at(-1)
  const left = last === undefined ? [] : ended.slice(ended.indexOf(last.of))
  for (const one of left) looked.delete(one)
  if (last !== undefined) {
    looked.set(last.of, [last.of.parent, last.of.after, last.child, last.of.id])
    last.of.after = last.child
  }
  return { looked, left, links }
}

/** @returns children that have ended, too */
function close(context: StoreContext, looked: ReadonlyMap<Ended, Range>, links: readonly Link[]): Ended[] {
  const { statements } = context
  const rangesOf = (which: (of: Ended) => boolean): string | null => {
    const ranges = [...looked].filter(([of]) => which(of))
    return links.some(({ of }) => which(of)) ? JSON.stringify(ranges.map(([, range]) => range)) : null
  }
  const closing = rangesOf(({ end }) => end !== 'gone')
  const dropping = rangesOf(({ isGone }) => isGone)
  if (closing !== null) statements.run('graphs/close', { ended: closing })
  if (dropping !== null) for (const name of ['gone', 'drop']) statements.run(`graphs/${name}`, { ended: dropping })
  const failed = new Map<Ended, { end: 'dead' | 'cancelled' | 'removed'; children: number[] }>()
  const free: number[] = []
  for (const { of, child, open } of links) {
    const { end } = of
    if (open <= 0 || end === 'gone') continue
    if (end === 'done' || open === 2) {
      free.push(child)
      continue
    }
    const own = failed.get(of) ?? { end, children: [] }
    failed.set(of, own)
    own.children.push(child)
  }
  const cancelled = [...failed].flatMap(([{ id }, { end, children }]) => cancelChildren(context, { id, end }, children))
  release(context, free)
  return cancelled
}

/** @returns those that were blocked until now */
export function cancelChildren(
  context: StoreContext,
  { id, end }: { id: string; end: Exclude<End, 'gone'> },
  children: readonly number[],
): Ended[] {
  const { statements, queues, now } = context
  const error = JSON.stringify(parentFailed(id, end))
  const gone: number[] = []
  const rows = statements.all('graphs/cancel', { children: JSON.stringify(children), error, now })
  const cancelled = rows.map((row): Ended => {
    const queue = queues.findOrCreate(text(row.queue))
    const isGone = !queue.keeps('cancelled')
    const child = { parent: integer(row.seq), id: text(row.id), isGone }
    queue.finish('blocked', 'cancelled', child.id)
    letFollow(context, queue, textOrNull(row.key))
    if (isGone) gone.push(child.parent)
    return { ...child, end: 'cancelled', ...ALL }
  })
  if (gone.length > 0) statements.run('graphs/remove', { children: JSON.stringify(gone) })
  forgetChildren(context, gone)
  return cancelled
}

/** Those that wait for nobody any more are waiting, or scheduled. */
function release({ statements, queues, now }: StoreContext, children: readonly number[]): void {
  if (children.length === 0) return
  const grouped = new Set<string>()
  for (const row of statements.all('graphs/release', { children: JSON.stringify(children), now })) {
    const queue = queues.findOrCreate(text(row.queue))
    const state = row.state === 'waiting' ? 'waiting' : 'scheduled'
    queue.move('blocked', state, 1, integer(row.due_at) - now)
    if (state === 'waiting' && queue.settings.isGrouped) grouped.add(queue.name)
  }
  for (const name of grouped) queues.lineUp(name)
}

/** Jobs are removed, and their links to their parents with them. */
function forgetChildren({ statements }: StoreContext, children: readonly number[]): void {
  if (children.length === 0) return
  const rows = statements.all('graphs/forget', { children: JSON.stringify(children) })
  statements.run('graphs/forget_gone', { children: JSON.stringify(children) })
  for (const node of new Set(rows.map(({ parent }) => integer(parent)))) {
    if (node < 0) statements.run('graphs/unawaited', { node })
  }
  shrink(statements)
}

/** What is left for sweeps has lost links. */
export function shrink(statements: Statements): void {
  if (statements.get('graphs/ended', { limit: 1 }) === undefined) return
  for (const name of ['shrink', 'over']) statements.run(`graphs/${name}`)
}

/**
 * Before a sweep removes jobs that were kept long enough.
 * @returns how many stay, as a live child may ask for their results: they are in no list from now on
 */
export function expiring(
  { statements, now }: StoreContext,
  queue: Queue,
  of: { state: FinalState; limit: number },
  endings: Endings,
): number {
  if (!queue.settings.usesGraphs) return 0
  const ids = statements.all('graphs/expiring', { queue: queue.name, now, ...of }).map(({ id = null }) => text(id))
  endings.look(queue, ids)
  let held = 0
  for (const id of ids) {
    const seq = of.state === 'done' ? endings.parent(id) : undefined
    const child = seq === undefined ? undefined : liveChild(statements, seq, 0)
    if (seq === undefined || child === undefined) endings.removed(id, false)
    else {
      statements.run('graphs/hold', { seq, child, now })
      statements.run('graphs/unlist', { seq })
      held++
    }
  }
  return held
}

/** Removes jobs that were held for children of which none is live any more. */
export function lookAtHeld(context: StoreContext, endings: Endings): void {
  const { statements, queues, now } = context
  for (const { seq = null, child: from = null, id = null, queue } of statements.all('graphs/held', { now })) {
    const child = id === null ? undefined : liveChild(statements, integer(seq), integer(from))
    if (child !== undefined) {
      statements.run('graphs/look_again', { seq, child, now })
      continue
    }
    statements.run('graphs/unhold', { seq })
    if (id === null) continue
    endings.look(queues.findOrCreate(text(queue)), [text(id)])
    endings.removed(text(id), false)
    statements.run('sweep/remove', { id })
  }
}

function liveChild(statements: Statements, seq: number, from: number): number | undefined {
  const row = statements.get('graphs/live_child', { seq, child: from })
  return row === undefined ? undefined : integer(row.child)
}
