/**
 * Every default and bound that several languages share. Times are in milliseconds, sizes in bytes.
 * Made of `contract/defaults.json` by `npm run docs`; change that, not this.
 */
export const DEFAULTS = {
  queue: {
    capacity: null,
    keepDone: 3_600_000,
    keepDead: 604_800_000,
    paused: false,
    attempts: 10,
    backoff: {
      base: 1000,
      factor: 2,
      max: 3_600_000,
      jitter: 0.5,
    },
    lease: 30_000,
    timeout: null,
    running: null,
    rate: null,
    grouped: false,
    groupRunning: null,
    groupRate: null,
  },
  memory: {
    capacity: 100_000,
    finished: 10_000,
  },
  group: {
    running: null,
    rate: null,
    weight: 1,
  },
  job: {
    priority: 4,
    delay: 0,
    cost: 1,
  },
  claim: {
    minPriority: 0,
    perGroup: 1,
    bytes: 16_777_216,
  },
  rate: {
    burstTime: 100,
  },
  store: {
    soon: 1000,
    keepGroup: 10_000,
    setBack: 1000,
    workerSilence: 60_000,
    histogramMinutes: 60,
    look: 1000,
    ahead: 1000,
    groupsCounted: 10_000,
    outcomes: 8_388_608,
  },
  sweep: {
    every: 1000,
    limit: 1000,
  },
  heartbeat: {
    every: 15_000,
    unknownQueue: 1000,
  },
  worker: {
    concurrency: 10,
    batchConcurrency: 1,
    window: 50,
    poll: 1000,
    record: 1000,
    maxClaim: 500,
    maxBuffered: 1000,
    riseWeight: 0.25,
    fallWeight: 0.05,
    pauseFactor: 2,
    maxPause: 10,
    minRetryAfter: 10,
    firstRetry: 50,
    maxRetry: 5000,
    retryFactor: 2,
    besideAnother: 64,
    extensionsPerLease: 3,
    reportAfter: 250,
    logAfter: 1000,
    close: 30_000,
    closeWait: 1000,
    replica: 5000,
    replicaRest: 2000,
  },
  schedule: {
    due: 100,
    versions: 16,
    declare: 30_000,
    declared: 90_000,
    onTime: 60_000,
    missed: 1000,
    atOnce: 100,
    data: 65_536,
  },
  graph: {
    step: 1000,
    look: 60_000,
    shown: 100_000,
    jobs: 5000,
    bytes: 16_777_216,
  },
  payload: {
    max: 1_048_576,
  },
  steps: {
    entries: 10_000,
    bytes: 16_777_216,
    page: 4_194_304,
    name: 512,
    meta: 65_536,
    body: 1_048_576,
    key: 200,
    shortSleep: 1000,
    shortRetry: 5000,
  },
  log: {
    lines: 100,
    bytes: 65_536,
    message: 2000,
    fields: 4000,
  },
  producer: {
    maxItems: 500,
    maxBytes: 1_048_576,
    poll: 1000,
    firstTry: 16,
  },
  coalesce: {
    timeout: 30_000,
    attempts: 3,
    keep: 10_000,
    minLease: 500,
    maxLease: 10_000,
    leasesPerTimeout: 3,
    concurrency: 1000,
  },
  actions: {
    keep: 7_776_000_000,
  },
  webhook: {
    backoff: {
      base: 5000,
      factor: 4,
      max: 86_400_000,
      jitter: 0.5,
    },
    concurrency: 10,
    timeout: 20_000,
    minRetryAfter: 1000,
    maxRetryAfter: 86_400_000,
    maxAnswer: 65_536,
  },
  bounds: {
    priority: {
      least: 0,
      most: 9,
    },
    delay: {
      least: 0,
      most: 3_155_760_000_000,
    },
    keep: {
      least: 0,
      most: 3_155_760_000_000,
    },
    backoffTime: {
      least: 0,
      most: 3_155_760_000_000,
    },
    backoffFactor: {
      least: 1,
      most: 100,
    },
    backoffJitter: {
      least: 0,
      most: 1,
    },
    timeout: {
      least: 1,
      most: 2_073_600_000,
    },
    lease: {
      least: 50,
      most: 2_073_600_000,
    },
    runAt: {
      least: 0,
      most: 8_640_000_000_000_000,
    },
    attempts: {
      least: 1,
      most: 1_000_000,
    },
    capacity: {
      least: 1,
      most: 9_007_199_254_740_991,
    },
    trace: {
      least: 1,
      most: 512,
    },
    cost: {
      least: 1,
      most: 10_000,
    },
    running: {
      least: 1,
      most: 2_147_483_647,
    },
    rateCount: {
      least: 1,
      most: 1_000_000,
    },
    ratePer: {
      least: 1,
      most: 86_400_000,
    },
    rateBurst: {
      least: 1,
      most: 1_000_000,
    },
    rateBurstTime: {
      least: 0,
      most: 1_000_000_000_000_000,
    },
    weight: {
      least: 0,
      most: 1000,
    },
    pause: {
      least: 0,
      most: 3_155_760_000_000,
    },
    body: {
      least: 0,
      most: 16_777_216,
    },
    interval: {
      least: 1000,
      most: 3_155_760_000_000,
    },
    parents: {
      least: 0,
      most: 10_000,
    },
    queueName: {
      least: 1,
      most: 128,
    },
    keyBytes: {
      least: 1,
      most: 255,
    },
  },
}
