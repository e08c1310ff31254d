/** What the explorer has found on Redis once. */

import { operation } from './operations.ts'
import { interleavings } from './suite.ts'

interleavings('redis', [
  // A worker sleeps while its queue is removed, and the first job of the next one is for it.
  {
    config: 'rate',
    history: 'at the limit, a worker sleeps',
    scripts: [{ operations: [operation('removeQueue')] }, { operations: [operation('push')] }],
  },
])
