/** How the module of an isolated handler is loaded, and what a worker says that cannot load it. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Millpond, type MillpondError } from '../../src/index.ts'
import { carriedOver } from '../../src/worker/isolated/command.ts'
import { inState } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { moduleOf } from './fixture.ts'

const INDEX = JSON.stringify(new URL('../../src/index.ts', import.meta.url))

/** Why a module cannot be the handler. */
const FAULTY: Readonly<Record<string, [code: string, message: RegExp]>> = {
  'it is not there': ['', /cannot be loaded: .*Cannot find module/],
  'its code is wrong': ['export default (', /cannot be loaded: Expression expected/],
  'it throws': [`throw new RangeError('no postgres://me:secret@db')`, /cannot be loaded: RangeError at .*handler\.ts/],
  'it has no default export': ['export const handler = () => 1', /default export must be the handler, .* undefined/],
  'its default export is no function': ['export default { handler() {} }', /must be the handler, a function; it is /],
  'it ends the process': ['process.exit(3)', /ended with exit code 3/],
  'it takes too much memory': [
    'const all = []; for (;;) all.push(Buffer.alloc(1e6, 1)); export default () => {}',
    /more memory than 192 MB/,
  ],
}

describe('a module that is no handler costs no job an attempt, and is told', () => {
  for (const [title, [code, message]] of Object.entries(FAULTY)) {
    test(title, { timeout: 60_000 }, async (t) => {
      const file = join(scratch(t), 'handler.ts')
      if (code !== '') writeFileSync(file, code)
      const pond = await Millpond.open('memory:')
      after(t, () => pond.close({ timeout: 100 }))
      const errors: MillpondError[] = []
      pond.on('error', (error) => errors.push(error))
      const queue = pond.queue<number>('q')
      queue.work(pathToFileURL(file), { isolate: { memory: '192MB' }, concurrency: 1 })
      const { id } = await queue.push(1)
      await until(() => errors.length > 0, 'the error')
      assert.equal(errors[0]?.code, 'HandlerNotLoaded')
      assert.match(errors[0]?.message ?? '', message)
      assert.match(errors[0]?.message ?? '', /handler\.ts/)
      assert.doesNotMatch(errors[0]?.message ?? '', /secret/)
      const { state, attempt } = (await pond.job(id)) ?? {}
      assert.deepEqual([state, attempt], ['waiting', 0])
      if (title !== 'it throws') return
      // Once it is mended, the worker goes on by itself.
      writeFileSync(file, 'export default ({ data }: { data: number }) => data + 1')
      assert.equal(await pond.result(id), 2)
      assert.equal((await inState(pond, id, 'done')).attempt, 1)
    })
  }
})

test('a further process that cannot load the module costs no job an attempt', { timeout: 60_000 }, async (t) => {
  const folder = scratch(t)
  const file = join(folder, 'handler.ts')
  const loads = JSON.stringify(join(folder, 'loads'))
  // The first process alone loads it.
  const code = `import { existsSync, writeFileSync } from 'node:fs'
    if (existsSync(${loads})) throw new Error('too many')
    writeFileSync(${loads}, '')
    export default async ({ data }) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return data
    }`
  writeFileSync(file, code)
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const errors: MillpondError[] = []
  pond.on('error', (error) => errors.push(error))
  const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
  queue.work(pathToFileURL(file), { isolate: {}, concurrency: 6 })
  const pushed = await queue.pushMany(Array.from({ length: 60 }, (_, at) => at))
  const results = await Promise.all(pushed.map(({ id }) => pond.result(id)))
  assert.deepEqual(
    results,
    Array.from({ length: 60 }, (_, at) => at),
  )
  assert.equal((await queue.stats()).counts.dead, 0)
})

/** Runs a process that isolates a handler. @returns what it prints */
async function run(flags: readonly string[], module: URL, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const code = `
    import { Millpond } from ${INDEX}
    const pond = await Millpond.open('memory:')
    const queue = pond.queue('q')
    try {
      queue.work(new URL(${JSON.stringify(module)}), { isolate: { memory: '512MB', cpu: '30s' }, concurrency: 1 })
      const { id } = await queue.push(20)
      console.log(await pond.result(id))
    } catch (error) {
      console.log(error.code, error.message)
    }
    await pond.close()
  `
  const options = { timeout: 50_000, env: { ...process.env, ...env } }
  const args = [...flags, '--input-type=module', '--eval', code]
  return (await promisify(execFile)(process.execPath, args, options)).stdout
}

describe('modules load as in the worker’s process', () => {
  test('with its hooks, preloaded modules, NODE_OPTIONS and environment', { timeout: 60_000 }, async (t) => {
    const folder = scratch(t)
    const at = (name: string, text: string) => {
      const file = join(folder, name)
      writeFileSync(file, text)
      return pathToFileURL(file)
    }
    const hooks = at(
      'hooks.mjs',
      `import { registerHooks } from 'node:module'
       registerHooks({ resolve: (name, context, next) =>
         name === 'answer' ? { url: 'data:text/javascript,export default 2', shortCircuit: true } : next(name, context) })`,
    )
    const option = at('option.mjs', 'globalThis.byOption = 1')
    const handler = at(
      'handler.ts',
      `import answer from 'answer'
       enum Kind { Double = 1 }
       export default ({ data }: { data: number }) => \`\${data * answer} \${Kind.Double} \${globalThis.byOption} \${process.env.TOLD}\``,
    )
    const flags = ['--experimental-transform-types', '--no-warnings', '--import', hooks.href]
    const env = { NODE_OPTIONS: `--import ${option}`, TOLD: 'env' }
    assert.equal(await run(flags, handler, env), '40 1 1 env\n')
  })

  test('flags of the main program are left out, others are kept', () => {
    const own = ['-e', 'code', '--input-type=module', '--inspect=9229', '--watch', '--test-force-exit', '-p', '1']
    const kept = ['--import', 'tsx', '--require=./x.cjs', '--conditions', 'dev', '--no-warnings', '-r', 'y']
    assert.deepEqual(carriedOver([...own, ...kept, '--max-old-space-size=4096']), kept)
  })
})

describe('a process that may not do all', () => {
  const granted = ['--permission', '--allow-fs-read=*', '--no-warnings']
  const module = moduleOf('prints')

  test('without leave to start processes or threads, work says which flag it lacks', { timeout: 60_000 }, async () => {
    const lacksProcess = await run([...granted, '--allow-worker'], module)
    assert.match(lacksProcess, /^NotSupported work on q: isolate needs --allow-child-process, .*--permission\n$/)
    const lacksThread = await run([...granted, '--allow-child-process'], module)
    assert.match(lacksThread, /^NotSupported work on q: isolate needs --allow-worker, .*--permission\n$/)
  })

  test('with both it works, and the handler may do no more than the worker', { timeout: 60_000 }, async (t) => {
    const folder = scratch(t)
    const file = join(folder, 'handler.ts')
    const written = JSON.stringify(join(folder, 'written'))
    writeFileSync(
      file,
      `import { writeFileSync } from 'node:fs'
       export default () => { try { writeFileSync(${written}, 'x') } catch (error: any) { return error.code } }`,
    )
    const printed = await run([...granted, '--allow-worker', '--allow-child-process'], pathToFileURL(file))
    assert.equal(printed, 'ERR_ACCESS_DENIED\n')
  })
})
