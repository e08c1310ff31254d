/** What the explorer has found on PostgreSQL once. */

import type { Script } from './arena.ts'
import { type Kind, type Operation, operation } from './operations.ts'
import { interleavings, type Known } from './suite.ts'

const script = (kind: Kind, given: Partial<Operation> = {}): Script => ({ operations: [operation(kind, given)] })
const ROW: Script = { operations: [], row: true }
const SLEEP = script('sleep')

const known = (config: string, history: string, ...scripts: Script[]): Known => ({ config, history, scripts })

interleavings('postgres', [
  // Whatever lets a job start, beside a claim that does not see it yet.
  known('running 1', 'alone', script('complete'), SLEEP),
  known('group running 1', 'at the limit', script('failLater'), SLEEP),
  known('group running 1', 'at the limit', script('cancel'), SLEEP),
  known('group running 1', 'some were cancelled', script('requeue'), SLEEP),
  known('running 1', 'at the limit', script('configure', { running: 3 }), SLEEP),
  known('group running 1', 'empty', script('pushInTransaction'), SLEEP),
  known(
    'group running 1',
    'at the limit',
    { operations: [operation('fail')], stop: { statement: 'insert moves', when: 'after' } },
    SLEEP,
  ),
  // Claims beside each other, and beside what they fold.
  known('group running 2', 'paused and scheduled', script('claim', { limit: 2, wait: 1100 }), script('claim')),
  known('group rate', 'at the limit', script('claim', { limit: 1 }), script('limitGroup', { wait: 1100 })),
  known(
    'group running 1',
    'some run',
    { operations: [operation('claim', { limit: 1 })], stop: { statement: 'insert running', when: 'before' } },
    script('claim'),
  ),
  known(
    'group running 1',
    'waiting',
    { operations: [operation('claim')], stop: { statement: 'delete arrivals', when: 'after' } },
    script('claim'),
  ),
  known(
    'running 1',
    'waiting',
    { operations: [operation('claim')], stop: { statement: 'delete waiting', when: 'before' } },
    script('claim'),
  ),
  known('running 2, group running 1', 'waiting', script('claim', { limit: 1 }), script('claim', { limit: 2 })),
  // The last claim must not fold the ending before it sees that the first one took the group's ticket.
  known('group running 2', 'one group', script('claim', { limit: 1 }), script('complete'), script('claim')),
  // Who waits for a stranger's key keeps nobody from the room.
  known('rate', 'waiting', script('unique'), script('pushMany'), { operations: [], stranger: 'keys' }),
  known('no limits', 'a key waits', script('replace'), script('push'), { operations: [], stranger: 'key' }),
  known('no limits', 'at the limit', script('sweep', { wait: 31_000 }), { operations: [], stranger: 'followed' }),
  // Several rows, in one order for all.
  known('group running 2', 'at the limit', script('complete'), script('cancel'), ROW),
  known('group running 2', 'at the limit', script('extend'), script('complete'), ROW),
  known('group running 2', 'at the limit', script('release'), script('cancel'), ROW),
  known('group running 2', 'at the limit', script('fail'), script('extend'), ROW),
])
