/** Which of the tests run on the other runtimes, and what is known to differ there. docs/contributing/runtimes.md says it in words. */

import { readdirSync } from 'node:fs'

export type RuntimeName = 'deno' | 'bun'

/** Reasons, by file and by the end of the test's name. */
export type Reasons = Readonly<Record<string, Readonly<Record<string, string>>>>

interface Differences {
  /** Why a file is not run. */
  files: Readonly<Record<string, string>>
  /** Why a test cannot pass. Each must fail, lest the list outlive its reasons. */
  failing: Reasons
}

const FOLDERS = ['unit', 'conformance', 'api', 'web', 'cache', 'serve']

/** Not for what they test, but for the time they take; all are about things that no runtime has a part in. */
const NODE_ALONE: Readonly<Record<string, string>> = {
  'test/api/admin.test.ts': 'what operators set, which the stores keep',
  'test/api/batch-transactions.test.ts': 'the clients are those of test/api/transactions.test.ts',
  'test/api/batch-handler.test.ts': 'which jobs a worker hands over together, plain code',
  'test/api/bulk.test.ts': 'changes of many jobs, which the stores make',
  'test/api/capacity.test.ts': 'how full a queue is, which the stores decide',
  'test/api/close.test.ts': 'what ends in which order, plain code',
  'test/api/coalesce-shared.test.ts': 'whose call is made, which the stores decide',
  'test/api/debounce-example.test.ts': 'a process of Node',
  'test/api/events.test.ts': 'which events come, plain code',
  'test/api/graph-examples.test.ts': 'a process of Node',
  'test/api/push.test.ts': 'what a push stores, plain code',
  'test/api/handler.test.ts': 'what becomes of a handler and its job, plain code',
  'test/api/refusals.test.ts': 'which options are refused, plain code',
  'test/api/requeue-example.test.ts': 'a process of Node',
  'test/api/graphs.test.ts': 'what waits for what, which the stores decide',
  'test/api/lanes.test.ts': 'which jobs a worker asks for, plain code',
  'test/api/limits.test.ts': 'limits, which the stores keep',
  'test/api/logs.test.ts': 'lines of jobs, which the stores keep',
  'test/api/once.test.ts': 'keys, which the stores keep',
  'test/api/order.test.ts': 'the order of jobs, which the stores keep',
  'test/api/plain-store.test.ts': 'what a store lacks, plain code',
  'test/api/prefetch.test.ts': 'half a minute of waiting for slow handlers',
  'test/api/process.test.ts': 'a minute of processes; user.js starts one, too',
  'test/api/results.test.ts': 'results, which the stores keep; bells are in test/conformance/bells.test.ts',
  'test/api/schedules.test.ts': 'schedules, which the stores keep',
  'test/conformance/bulk.test.ts': 'long lists, which the stores walk',
  'test/conformance/capabilities.test.ts': 'what a store says that it lacks',
  'test/conformance/concurrency.test.ts': 'races, which the stores decide',
  'test/conformance/filters.test.ts': 'filters, which the stores apply',
  'test/conformance/graphs.test.ts': 'what waits for what, which the stores decide',
  'test/conformance/known.test.ts': 'ids and keys, which the stores know',
  'test/conformance/meddled.test.ts': 'calls that are changed on their way, plain code',
  'test/conformance/removal.test.ts': 'what stores forget',
  'test/conformance/schedules.test.ts': 'which schedules fire, plain code',
  'test/conformance/telemetry.test.ts': 'what is told of calls, plain code',
  'test/conformance/store.test.ts': 'what stores keep',
  'test/conformance/groups.test.ts': 'half a minute of turns, which the stores decide',
  'test/cache/cluster.test.ts': 'a cluster with nodes that die',
  'test/cache/full.test.ts': 'a server of its own, that is full',
  'test/cache/network.test.ts': 'a network with faults',
  'test/cache/outage.test.ts': 'a server that is away',
  'test/cache/processes.test.ts': 'half a minute of processes that are killed and stopped',
  'test/serve/delivery-hostile.test.ts': 'a process of Node, and hundreds of broken answers',
  'test/serve/examples.test.ts': 'programs in other languages',
  'test/serve/hangups.test.ts': 'ten thousand clients of a process of Node',
  'test/serve/hostile.test.ts': 'thousands of hostile requests',
  'test/web/examples-stop.test.ts': 'processes of Node under load',
  'test/web/stop.test.ts': 'processes of Node that end by signals',
}

/** Of the files about producers, workers and `serve`: what has to do with the clients of servers. */
export const ON_SERVERS: readonly string[] = ['test/api/transactions.test.ts']

const HOOKS = 'the examples import the package by its name, which a hook of Node’s module loader leads to src/'

const COLLECTION = 'it asks V8 for a full collection, by a flag of Node’s'

const METHODS = 'its Request makes a GET of a method that it does not know'

/** Why a test may pass or fail, wherever it runs. */
export const UNSURE: Reasons = {
  // Passes where the package happens to be built.
  'test/cache/rendered.test.ts': { 'examples/cache.ts': HOOKS },
  'test/web/accept-hostile.test.ts': {
    'a body over the limit: 413, whether it says so or not':
      'Deno’s fetch may report the connection’s end and not the answer before it, where it still streams a body',
  },
  'test/serve/queue-limit.test.ts': {
    'beyond the limit a new queue is refused with TooManyQueues; those that are there go on':
      'the service is asked sooner than its first sweep has counted, and then lets a few in beyond the limit',
  },
}

export const DIFFERENCES: Readonly<Record<RuntimeName, Differences>> = {
  deno: {
    files: {
      'test/api/process-ends.test.ts': 'it starts its processes with flags of Node’s; user.js ends by itself, too',
      'test/web/adapters-examples.test.ts': HOOKS,
      'test/unit/compiled-code.test.ts': COLLECTION,
      'test/unit/worker-claims.test.ts': 'mocked timers stop those that the test itself waits with, too',
      'test/unit/worker-batches.test.ts': 'mocked timers stop those that the test itself waits with, too',
    },
    failing: {
      'test/web/adapters.test.ts': {
        'status, headers, cookies and body go out as they are': 'its node:http answers with the usual status text',
      },
      'test/web/close-server.test.ts': {
        'what is under way is waited for, and its client may ask once more':
          'its node:http ends a connection after the answer once the server does not listen any more',
      },
    },
  },
  bun: {
    files: {
      'test/web/adapters-examples.test.ts': HOOKS,
      'test/unit/compiled-code.test.ts': COLLECTION,
    },
    failing: {
      'test/cache/bounds.test.ts': { 'weights are near what V8 takes': 'it has no V8' },
      'test/serve/refusals.test.ts': { 'paths and methods: 400, 404, 405 with Allow': METHODS },
      'test/serve/server.test.ts': {
        'what is no HTTP, and headers over 16 KiB, are refused with a problem document': METHODS,
      },
      'test/web/close-server.test.ts': {
        'a request that is on its way on a kept connection gets its answer, and is told to go':
          'its node:http can stop to listen only by closing idle connections at once',
      },
      'test/unit/batch.test.ts': {
        'what they left behind is not held on to while a group hangs': 'the test asks V8 to collect garbage',
      },
      'test/unit/ids.test.ts': {
        'at the first moment of all, as under a mocked clock, they are well-formed':
          'a module that is imported again with a query is the same module',
      },
    },
  },
}

/** The test files for a runtime, each with the reason why it is not run, or undefined. */
export function filesFor(runtime: RuntimeName): Map<string, string | undefined> {
  const root = new URL('../../', import.meta.url)
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(new URL(`test/${folder}/`, root))
      .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.deep.test.ts'))
      .sort()
      .map((name) => `test/${folder}/${name}`),
  )
  const skipped = { ...NODE_ALONE, ...DIFFERENCES[runtime].files }
  for (const file of Object.keys(skipped)) {
    if (!files.includes(file)) throw new Error(`${file} is to be skipped on ${runtime}, and does not exist`)
  }
  return new Map(files.map((file) => [file, skipped[file]]))
}
