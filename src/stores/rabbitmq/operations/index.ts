import type { PartialOperations } from '../../lacking.ts'
import type { StoreContext } from '../context.ts'
import { claim } from './claim.ts'
import { configure } from './configure.ts'
import { complete, fail, release } from './end.ts'
import { extend } from './extend.ts'
import { push } from './push.ts'
import { restore } from './restore.ts'
import { record, stats } from './stats.ts'
import { sweep } from './sweep.ts'
import { heartbeat } from './workers.ts'

export function operationsOf(context: StoreContext): PartialOperations {
  const on =
    <In, Out>(operation: (context: StoreContext, input: In) => Promise<Out>) =>
    (input: In): Promise<Out> =>
      operation(context, input)
  return {
    ...{ configure: on(configure), push: on(push), restore: on(restore), claim: on(claim) },
    ...{ complete: on(complete), fail: on(fail), release: on(release), extend: on(extend), sweep: on(sweep) },
    ...{ stats: on(stats), record: on(record), heartbeat: on(heartbeat) },
  }
}
