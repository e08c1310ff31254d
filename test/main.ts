/**
 * `npm test`, `npm run test:deep`, `npm run test:fast`: which test files run, and how. `npm run test:deep` runs `*.deep.test.ts`, `npm test` all
 * others. A deep file may consist of an import of another one, whose sizes (support/depth.ts) are the deep ones then.
 * MILLPOND_TEST_TIMES names a file to which each test file appends what it cost (support/times.ts).
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const USUAL = 'test/**/!(*.deep).test.ts'
export const DEEP = 'test/**/*.deep.test.ts'
/** What needs no server, or skips what does. */
const FAST =
  'test/{unit,conformance,model,stores,api,worker,web,cache,move,serve,cli,testing,interleave,secrets,lab}/**/!(*.deep).test.ts'

/** Most ms that one test may take: longer than BOUND in support/until.ts, whose message says what was waited for. */
const PATIENCE = 300_000

interface Run {
  files: string
  environment: Readonly<Record<string, string>>
  withServers: boolean
}

const RUNS: Readonly<Record<string, Run>> = {
  usual: { files: USUAL, environment: {}, withServers: true },
  deep: { files: DEEP, environment: { MILLPOND_TEST_DEEP: '1' }, withServers: true },
  fast: { files: FAST, environment: { MILLPOND_TEST_SERVERS: 'no' }, withServers: false },
}

const ROOT = fileURLToPath(new URL('../', import.meta.url))

function start({ files, environment, withServers }: Run, more: readonly string[]): void {
  const times = process.env.MILLPOND_TEST_TIMES === undefined ? [] : ['--import', './test/support/times.ts']
  const options = [
    ...['--import', './test/support/whole-report.ts', ...times],
    ...['--test', '--test-force-exit', `--test-timeout=${PATIENCE}`],
    // The files wait more than they compute: more of them at once than there are cores.
    '--test-concurrency=5',
    ...(withServers ? ['--test-global-setup=test/servers/global.ts'] : []),
  ]
  const env = {
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/millpond-tests', import.meta.url)),
    // What the caller has set goes first, such as MILLPOND_TEST_DEEP=10.
    ...environment,
    ...process.env,
  }
  const child = spawn(process.execPath, [...options, ...more, files], { cwd: ROOT, env, stdio: 'inherit' })
  // Ctrl-C reaches the child as well, which then stops the servers: wait for that.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => (process.exitCode = code ?? 1))
}

if (import.meta.main) {
  const [name = 'usual', ...more] = process.argv.slice(2)
  const run = RUNS[name]
  if (run === undefined) throw new Error(`${name} is none of ${Object.keys(RUNS).join(', ')}`)
  start(run, more)
}
