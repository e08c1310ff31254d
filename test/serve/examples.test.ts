/** The producers and workers of other languages, run as they are, where their interpreter can be found. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startServing } from '../../src/cli/serve/start.ts'
import { settingsOf } from '../cli/in-process.ts'
import { install, mayInstall } from '../servers/install.ts'
import { until } from '../support/until.ts'

interface Language {
  extension: string
  /** Asked for its version, to see whether it is there. */
  probe: readonly [program: string, ...args: string[]]
  /** The Debian package that has it, installed where that is allowed; none: too large for that. */
  debian?: string
  /** The command that runs a file. @param folder a fresh one */
  command(file: string, folder: string): [program: string, args: string[]]
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  Python: {
    extension: 'py',
    probe: ['python3', '--version'],
    debian: 'python3',
    command: (file) => ['python3', [file]],
  },
  PHP: { extension: 'php', probe: ['php', '--version'], debian: 'php-cli', command: (file) => ['php', [file]] },
  Go: {
    extension: 'go',
    probe: ['go', 'version'],
    // Built first: what `go run` starts would outlive it when it is ended.
    command: (file, folder) => {
      const program = join(folder, file.replaceAll(/\W/g, '-'))
      const built = spawnSync('go', ['build', '-o', program, file], {
        encoding: 'utf8',
        env: { ...process.env, GOTOOLCHAIN: 'local', GO111MODULE: 'off' },
      })
      assert.equal(built.status, 0, built.stderr)
      return [program, []]
    },
  },
}

function start(file: string, command: Language['command'], folder: string, env: NodeJS.ProcessEnv) {
  assert.ok(readFileSync(file, 'utf8').trimEnd().split('\n').length <= 40, `${file} has more than 40 lines`)
  const [program, args] = command(file, folder)
  return spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Why the language cannot be had; false: it is there. */
async function missing({ probe: [program, ...args], debian }: Language): Promise<string | false> {
  const isThere = () => spawnSync(program, args).status === 0
  if (isThere()) return false
  const trouble = debian !== undefined && mayInstall() ? await install(debian) : ''
  return isThere() ? false : `${program} is not installed.${trouble}`
}

for (const [name, language] of Object.entries(LANGUAGES)) {
  const { extension, command } = language
  const skip = await missing(language)

  test(`a producer and a worker in ${name}`, { skip, timeout: 300_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millpond-examples-'))
    const token = 'a-token-of-sixteen'
    const settings = await settingsOf(['--store', 'memory:', '--port', '0'], { MILLPOND_TOKEN: token })
    const running = await startServing(settings, () => {}, new AbortController().signal)
    assert.ok(running)
    const env = { ...process.env, MILLPOND_URL: running.origin, MILLPOND_TOKEN: token }
    const started: ReturnType<typeof start>[] = []
    const files = ['producer', 'worker'].map((role) => `../../examples/serve-${role}.${extension}`)
    try {
      for (const file of files) started.push(start(fileURLToPath(new URL(file, import.meta.url)), command, folder, env))
      const [producer, worker] = started
      assert.ok(producer && worker)
      let printed = ''
      producer.stdout.on('data', (chunk: Buffer) => {
        printed += chunk.toString('utf8')
      })
      await once(producer, 'close')
      assert.deepEqual([printed.trim(), producer.exitCode], ['done sent to ada@example.org', 0])
      assert.equal(worker.exitCode, null, 'the worker goes on')
      await stopsCleanly(worker, running.origin, token)
    } finally {
      for (const child of started) child.kill('SIGKILL')
      await running.stop('the test is over')
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

/** Under load, asked to stop by a signal: the worker ends with 0, and no claim of its is left. */
async function stopsCleanly(worker: ReturnType<typeof start>, origin: string, token: string): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const ask = async (path: string, body?: unknown) => {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    return Object(await (await fetch(`${origin}/v1/queues/emails${path}`, init)).json())
  }
  const jobs = Array.from({ length: 1000 }, (_, n) => ({ data: { to: `${n}@example.org` } }))
  for (let pushed = 0; pushed < 5; pushed++) await ask('/batches', { jobs })
  await until(async () => (await ask('')).counts.done > 20, 'the worker to be at work')
  const exited = once(worker, 'exit')
  worker.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
  const { counts } = await ask('')
  // One more is the producer's.
  assert.deepEqual([counts.running, counts.done + counts.waiting, counts.scheduled + counts.dead], [0, 5001, 0])
  assert.ok(counts.waiting > 0, 'there was load to the end')
}
