/** On a Node that is too old, the library and the program say which one they need. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { sharedFolder } from '../support/cleaning.ts'
import { layPackage, PACKING } from './published.ts'

const project = sharedFolder()
// Without the peer, its entry point cannot even be linked.
before(() => layPackage(project, ['@opentelemetry/api']), { timeout: PACKING })

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const NEEDS = /this is Node (\d+)\.\d+\.\d+; Millpond needs Node 22\.18 or later/

/** Those with code; `./store` has only types. */
const ENTRIES = Object.entries<{ default?: string } | string>(manifest.exports).flatMap(([path, entry]) =>
  typeof entry === 'object' && entry.default !== undefined && path !== './store' ? [path.replace('.', 'millpond')] : [],
)

/** One that was installed beside the one that runs this, if its code can be run by it at all. */
function oldNode(): string | undefined {
  const paths = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  return paths.filter((path) => existsSync(path)).find((path) => /^v(18|20)\./.test(version(path)))
}

function version(path: string): string {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

test('the manifest names the same one', () => {
  assert.equal(manifest.engines.node, '>=22.18')
})

function refuses(node: string, flags: readonly string[]): void {
  test('every entry point', () => {
    assert.ok(ENTRIES.length >= 10)
    for (const entry of ENTRIES) {
      const code = `import(${JSON.stringify(entry)}).catch(({ code, message }) => console.log(code, message))`
      const { stdout } = spawnSync(node, [...flags, '--eval', code], { cwd: project, encoding: 'utf8' })
      assert.match(stdout, NEEDS, entry)
      assert.match(stdout, /^NotSupported /, entry)
    }
  })

  test('the program', () => {
    const program = join(project, 'node_modules/millpond/dist/cli/main.js')
    const { status, stdout, stderr } = spawnSync(node, [...flags, program, '--help'], {
      cwd: project,
      encoding: 'utf8',
    })
    assert.match(stderr, new RegExp(`^millpond: ${NEEDS.source}\n$`))
    assert.deepEqual([status, stdout], [1, ''])
  })
}

describe('one that only says that it is old', () => {
  const code = `Object.defineProperty(process.versions, 'node', { value: '22.17.1' })`
  refuses(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(code)}`])
})

const found = oldNode()
describe('one that is old', { skip: found === undefined && 'no Node 18 or 20 on the PATH' }, () => {
  refuses(found ?? '', [])
})
