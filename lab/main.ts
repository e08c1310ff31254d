/** `node lab/main.ts NAME [options]`: plays one of the experiments; `--help` tells its options. */
import { play } from './experiment.ts'

const [name = '', ...args] = process.argv.slice(2)
const program = `node lab/main.ts ${name}`

/** Each loaded only where it is played. */
const EXPERIMENTS: Record<string, () => Promise<never>> = {
  bench: async () => play(program, (await import('./bench/experiment.ts')).bench, args),
  rivals: async () => play(program, (await import('./bench/experiment.ts')).rivals, args),
  users: async () => play(program, (await import('./users/experiment.ts')).users, args),
  newsletter: async () => play(program, (await import('./newsletter/experiment.ts')).newsletter, args),
  rate: async () => play(program, (await import('./newsletter/rate/experiment.ts')).rate, args),
  cache: async () => play(program, (await import('./cache/experiment.ts')).cache, args),
  coalesce: async () => play(program, (await import('./coalesce/experiment.ts')).coalesce, args),
  priorities: async () => play(program, (await import('./priorities/experiment.ts')).priorities, args),
  limits: async () => play(program, (await import('./limits/experiment.ts')).limits, args),
  move: async () => play(program, (await import('./move/experiment.ts')).moving, args),
  paired: async () => play(program, (await import('./paired/experiment.ts')).paired, args),
  views: async () => play(program, (await import('./views/experiment.ts')).views, args),
  shards: async () => play(program, (await import('./shards/experiment.ts')).shards, args),
  bulk: async () => play(program, (await import('./bulk/experiment.ts')).bulk, args),
  keys: async () => play(program, (await import('./keys/experiment.ts')).keys, args),
  graphs: async () => play(program, (await import('./graphs/experiment.ts')).graphs, args),
  slowlog: async () => play(program, (await import('./slowlog/experiment.ts')).slowlog, args),
  horizon: async () => play(program, (await import('./horizon/experiment.ts')).horizon, args),
  idle: async () => play(program, (await import('./idle/experiment.ts')).idle, args),
  metrics: async () => play(program, (await import('./metrics/experiment.ts')).metrics, args),
  isolation: async () => play(program, (await import('./isolation/experiment.ts')).isolation, args),
}

const start = EXPERIMENTS[name]
if (start === undefined) {
  console.error(`node lab/main.ts NAME [options], where NAME is ${Object.keys(EXPERIMENTS).join(', ')}`)
  process.exit(2)
}
await start()
