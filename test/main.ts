/**
 * `npm test`, `npm run test:deep`, `npm run test:fast`: which test files run, and how. `npm run test:deep` runs `*.deep.test.ts`, `npm test` all
 * others. A deep file may consist of an import of another one, whose sizes (support/depth.ts) are the deep ones then.
 * MILLPOND_TEST_TIMES names a file to which each test file appends what it cost (support/times.ts).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Run in one process, as the start of one takes longer than what most of these files do. */
export const UNITS = 'test/unit/!(*.deep).test.ts'
/** The others, each in a process of its own. */
export const USUAL = 'test/!(unit)/**/!(*.deep).test.ts'
export const DEEP = 'test/**/*.deep.test.ts'
/** What needs no server, or skips what does. */
const FAST =
  'test/{conformance,model,stores,api,worker,web,cache,move,serve,cli,testing,interleave,secrets,lab}/!(*.deep).test.ts'

/** Most ms that one test may take: longer than BOUND in support/until.ts, whose message says what was waited for. */
const PATIENCE = 300_000

interface Run {
  files: string
  withUnits: boolean
  environment: Readonly<Record<string, string>>
  /** The files wait more than they compute: more of them at once than there are cores. */
  concurrency: number
  patience: number
}

const NO_SERVERS = { MILLPOND_TEST_SERVERS: 'no' }
const RUNS: Readonly<Record<string, Run>> = {
  usual: { files: USUAL, withUnits: true, environment: {}, concurrency: 5, patience: PATIENCE },
  deep: {
    ...{ files: DEEP, withUnits: false, environment: { MILLPOND_TEST_DEEP: '1' } },
    ...{ concurrency: 5, patience: 4 * PATIENCE },
  },
  fast: { files: FAST, withUnits: true, environment: NO_SERVERS, concurrency: 2, patience: PATIENCE },
}

const ROOT = fileURLToPath(new URL('../', import.meta.url))

async function node(environment: Readonly<Record<string, string>>, args: readonly string[]): Promise<boolean> {
  const times = process.env.MILLPOND_TEST_TIMES === undefined ? [] : ['--import', './test/support/times.ts']
  const options = ['--import', './test/support/whole-report.ts', ...times, '--test', '--test-force-exit']
  const env = {
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/millpond-tests', import.meta.url)),
    // What the caller has set goes first, such as MILLPOND_TEST_DEEP=10.
    ...environment,
    ...process.env,
  }
  const child = spawn(process.execPath, [...options, ...args], { cwd: ROOT, env, stdio: 'inherit' })
  // Ctrl-C reaches the child as well, which then stops the servers: wait for that.
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, pass)
  const [code] = await once(child, 'exit')
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, pass)
  return code === 0
}

/** @param more options of Node's test runner */
async function start(run: Run, more: readonly string[]): Promise<void> {
  const bound = `--test-timeout=${run.patience}`
  const units = !run.withUnits || (await node(NO_SERVERS, ['--test-isolation=none', bound, ...more, UNITS]))
  const servers = run.environment === NO_SERVERS ? [] : ['--test-global-setup=test/servers/global.ts']
  const others = await node(run.environment, [
    ...[bound, `--test-concurrency=${run.concurrency}`, ...servers],
    ...[...more, run.files],
  ])
  if (!units || !others) process.exitCode = 1
}

if (import.meta.main) {
  const [name = 'usual', ...more] = process.argv.slice(2)
  const run = RUNS[name]
  if (run === undefined) throw new Error(`${name} is none of ${Object.keys(RUNS).join(', ')}`)
  await start(run, more)
}
