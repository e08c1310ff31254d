/** What meets in graphs on PostgreSQL, in all orders: links that are made while their parents end, and parents of one child that end at once. */
import type { Script, Stop } from './arena.ts'
import { type Kind, type Operation, operation } from './operations.ts'
import { interleavings, type Known } from './suite.ts'

type Call = readonly [Kind, Partial<Operation>?, Stop?]

const script = ([kind, given = {}, stop]: Call): Script => ({ operations: [operation(kind, given)], stop })
const after = (statement: string): Stop => ({ statement, when: 'after' })
const before = (statement: string): Stop => ({ statement, when: 'before' })
const known = (config: string, history: string, ...calls: Call[]): Known => ({
  ...{ config, history },
  scripts: calls.map(script),
})
/** A push locks no row of a parent there; where done jobs are not kept, it does. */
const KEPT = 'no limits, done jobs are kept'
const inBoth = (history: string, ...calls: Call[]): Known[] => [
  known('no limits', history, ...calls),
  known(KEPT, history, ...calls),
]

interleavings('postgres', [
  // A link is made while the parent ends, or starts.
  ...inBoth('some run', ['child'], ['complete', {}, after('delete running')]),
  ...inBoth('some run', ['child', {}, after('insert links')], ['complete']),
  ...inBoth('some run', ['childInTransaction'], ['kill', {}, after('insert moves')]),
  ...inBoth('waiting', ['childInTransaction', {}, after('insert children')], ['cancel']),
  ...inBoth('waiting', ['child'], ['remove', {}, after('insert moves')]),
  ...inBoth('waiting', ['childInTransaction'], ['sleep']),
  known(KEPT, 'some run', ['childInTransaction', {}, after('insert links')], ['complete', { limit: 1 }]),
  // Parents of one child end at once.
  known(KEPT, 'the last parents run', ['complete', { limit: 1 }], ['complete', { limit: 2 }]),
  known(KEPT, 'the last parents run', ['complete', { limit: 1 }, after('update children')], ['complete', { limit: 2 }]),
  known(KEPT, 'the last parents run', ['complete', { limit: 1 }, before('update links')], ['complete', { limit: 2 }]),
  known(KEPT, 'the last parents run', ['complete', { limit: 2 }, after('update links')], ['kill', { limit: 1 }]),
  known(KEPT, 'the last parents run', ['complete'], ['cancel']),
  // More is to be waited for.
  known(KEPT, 'the last parents run', ['partOf'], ['complete', {}, after('delete running')]),
  known(KEPT, 'the last parents run', ['partOf', {}, after('insert links')], ['complete']),
  known(KEPT, 'the last parents run', ['partOf'], ['partOf']),
  // Sweeps look at the parents that were noted, and settle.
  known(KEPT, 'children wait', ['sweep', {}, after('delete ended')], ['sweep']),
  known(KEPT, 'children wait', ['sweep'], ['complete', {}, after('delete running')]),
  known(KEPT, 'children wait', ['sweep'], ['child']),
  // All or none.
  ...inBoth('some run', ['graph', {}, after('insert links')], ['kill']),
  known(KEPT, 'some run', ['graph'], ['remove', {}, after('insert moves')]),
  // A child that is freed wakes a worker.
  known('group running 1', 'the last parents run', ['complete', {}, after('update waiting')], ['sleep']),
])
