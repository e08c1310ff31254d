/** The histories that bring a queue to a state worth racing in. */

import { type Operation, operation } from './operations.ts'

export interface History {
  name: string
  operations: readonly Operation[]
}

const push = (group: string, priority: number) => operation('push', { group, priority })
const claim = (limit: number, wait = 0) => operation('claim', { limit, wait })
const WAITING = [push('a', 4), push('a', 8), push('b', 4), push('c', 2), push('b', 4)]

export const HISTORIES: readonly History[] = [
  { name: 'empty', operations: [] },
  { name: 'waiting', operations: WAITING },
  { name: 'some run', operations: [...WAITING, claim(2)] },
  { name: 'at the limit', operations: [...WAITING, claim(40)] },
  { name: 'at the limit, a worker sleeps', operations: [...WAITING, claim(40), operation('sleep')] },
  { name: 'at the limit, one more', operations: [...WAITING, claim(40), push('a', 2)] },
  { name: 'worked off', operations: [...WAITING, claim(40), operation('complete'), claim(40), operation('complete')] },
  {
    name: 'some came back',
    operations: [...WAITING, claim(40), operation('fail'), claim(1), operation('release'), claim(1)],
  },
  {
    name: 'paused and scheduled',
    operations: [...WAITING, claim(3), operation('pause'), claim(2), operation('failLater'), claim(1)],
  },
  { name: 'some were cancelled', operations: [...WAITING, claim(2), operation('cancel'), claim(1)] },
  { name: 'some are dead', operations: [...WAITING, claim(3), operation('kill'), claim(1)] },
  { name: 'overridden', operations: [...WAITING, operation('override', { running: 2 }), claim(2)] },
  // With a ticket, once it is folded: one runs, two wait.
  { name: 'one group', operations: [push('a', 4), push('a', 4), push('a', 4), claim(1)] },
  { name: 'a key runs', operations: [operation('unique'), push('a', 4), claim(40)] },
  { name: 'a key runs, and is followed', operations: [operation('unique'), claim(40), operation('follow')] },
  { name: 'a key waits', operations: [push('b', 4), operation('replaceLater', { group: 'b' }), operation('replace')] },
  { name: 'children wait', operations: [...WAITING, claim(2), operation('child'), operation('graph'), claim(1)] },
  {
    name: 'the last parents run',
    operations: [
      push('a', 4),
      push('b', 4),
      push('c', 2),
      claim(3),
      operation('child'),
      operation('child', { priority: 8 }),
    ],
  },
  { name: 'some are parked', operations: [...WAITING, claim(3), operation('parkLater'), claim(1)] },
  { name: 'a parent is parked', operations: [push('a', 4), push('b', 4), claim(40), operation('parkAfter')] },
  { name: 'a parent runs', operations: [...WAITING, claim(3), operation('parkAfter', { limit: 2 }), claim(40)] },
  {
    name: 'alone',
    operations: [push('a', 4), push('a', 4), claim(1)],
  },
]
